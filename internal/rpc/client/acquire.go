package client

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/zkrecipes/zkrecipes/internal/rpc/carry"
	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// acquire asks for a grant, and returns the grant and the answer. ask is a new request with the data,
// the try and the recipe; acquire sets the rest. name is the recipe's in the metrics. On error, no
// waiter and no grant is left behind. If gRPC failed the call, or the caller stopped waiting, the
// session abandons the request id in the background until the plugin confirms.
//
// If joined is not nil, acquire calls it exactly once, as soon as the stream or the call
// itself delivers the place. If the plugin ends and the session continues, the call is
// repeated. A contender whose place is known keeps it.
func (r recipe) acquire(ctx context.Context, name string, ask *pb.AcquireRequest, joined func(recipes.Place)) (*remoteGrant, *pb.AcquireResponse, error) {
	if r.invalid != nil {
		return nil, nil, r.invalid
	}
	if err := ctx.Err(); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", r, err)
	}
	s, w := r.s, &waiter{joined: joined, turns: make(chan turn, 1)}
	id, asked := s.requestID(), time.Now()
	ask.Session, ask.RequestId, ask.Path, ask.Dialect = s.handle, id, r.path, r.dialect
	ask.Announce = joined != nil || s.resumable // the next plugin may have to resume the contender
	var at recipes.Place
	var known bool
	s.expect(id, w)
	defer func() {
		s.unexpect(id, w) // first: the next plugin does not serve the session before, and joined may call it
		w.notifying.Wait()
		if known {
			w.notify(at)
		}
	}()
	for {
		var a *pb.AcquireResponse
		err := s.complete(ctx, callOptions{waiter: w}, func(ctx context.Context) (err error) {
			if t := w.on; ask.Announce { // mu is not needed: only this goroutine sets w.on
				ctx = carry.WithEarly(ctx, func(part []byte) {
					if p, ok := wire.EarlyPlace(part); ok {
						s.placed(w, t, p)
					}
				})
			}
			a, err = s.grants.Acquire(ctx, resuming(ask, w.resumed))
			return err
		})
		if e, answered := wire.Error(err); answered && w.resumed != nil && errors.Is(e, recipes.ErrUnsupported) {
			continue // the place is lost: join again
		}
		at, known = place(a, err)
		if err == nil {
			err = s.catchUp(ctx)
		}
		if err != nil {
			if _, answered := wire.Error(err); !answered {
				s.abandon(id)
			}
			return nil, nil, s.explain(ctx, r.what, err)
		}
		if a.GetGrant().GetToken() <= 0 || a.GetGrant().GetZnode() == "" {
			s.abandon(id)
			return nil, nil, fmt.Errorf("%s: %w: the plugin's answer has no grant", r, recipes.ErrInternal)
		}
		g := &remoteGrant{
			s: s, id: id, recipe: name, request: ask, lost: make(chan struct{}),
			token: recipes.Token(a.GetGrant().GetToken()), znode: a.GetGrant().GetZnode(),
		}
		late, err := s.remember(w, g)
		if late {
			continue
		}
		s.meters.Granted(ctx, name, time.Since(asked))
		if err != nil { // the session's end releases it
			g.lose(fmt.Errorf("%w: %w", recipes.ErrNotHeld, err))
			return nil, nil, fmt.Errorf("%s: granted too late: %w", r, err)
		}
		return g, a, nil
	}
}

// resuming returns the request that resumes what was asked for with ask: a place or a grant. If
// resumed is nil, it returns ask.
func resuming(ask *pb.AcquireRequest, resumed *pb.Grant) *pb.AcquireRequest {
	if resumed == nil {
		return ask
	}
	ask = proto.CloneOf(ask)
	ask.Resumed = resumed
	return ask
}

// abandon cancels the request with that id in the plugin, in the background.
func (s *session) abandon(id string) {
	s.spawn(func() { // it does not run once the session is over: no grant is left then
		_ = s.persist(s.over, callOptions{awaited: true}, func(ctx context.Context) error {
			_, err := s.grants.Abandon(ctx, &pb.AbandonRequest{Session: s.handle, RequestId: id})
			return err
		})
	})
}

// remember records the grants of a call, so that the end of the session ends them too. They are
// late if their plugin has ended, and the next one has already resumed the session's other grants.
// DropRest deletes the znodes of late grants.
func (s *session) remember(w *waiter, grants ...*remoteGrant) (late bool, err error) {
	s.checkClock()
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.err != nil:
		return false, s.err
	case w.at != s.owner && w.at != s.resuming:
		return true, nil
	}
	for _, g := range grants {
		g.at = w.at
		s.held[g.id], s.owned[g.id] = g, g
	}
	s.clock.hold(true)
	return false, nil
}

// forget removes a grant that has ended and returns it, or nil if it was removed before.
func (s *session) forget(id string) *remoteGrant {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.owned, id)
	return s.endGrant(id)
}

// unhold removes a grant that is about to be released from those that are held. It stays
// among the possessions until the release is done, so the next plugin still resumes it.
func (s *session) unhold(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endGrant(id)
}

// endGrant removes a grant from those that are held. The caller holds mu.
func (s *session) endGrant(id string) *remoteGrant {
	g := s.held[id]
	delete(s.held, id)
	s.clock.hold(len(s.held) > 0)
	return g
}

// A waiter is a call that waits for its grant, and for the place at which its contender
// joined.
type waiter struct {
	joined    func(recipes.Place) // may be nil
	once      sync.Once
	notifying sync.WaitGroup // calls of joined while the call continues

	turns   chan turn // holds one: the latest turn that resumePossessions offered
	always  bool      // it is offered turns even without a znode: DropRest would undo the call's effect
	resumed *pb.Grant // the place to resume, or nil

	// Under the session's mu:
	on       *generation // the generation of the call; nil when it has returned
	znode    string      // the contender's znode, if known
	at       *generation // the generation whose plugin has the contender, or has answered the call
	turnDone func()      // notifies resumePossessions; may be nil
}

// A turn is offered to a call whose contender can be resumed in a generation.
type turn struct {
	in   *generation
	done chan struct{} // the call closes it when the contender was resumed, or will not be
}

func (w *waiter) notify(p recipes.Place) {
	if w.joined != nil {
		w.once.Do(func() { w.joined(p) })
	}
}

// offer offers a turn, replacing one that was not taken. The caller holds the session's mu,
// so a call that has returned is offered nothing.
func (w *waiter) offer(t turn) {
	select {
	case <-w.turns:
	default:
	}
	w.turns <- t
}

// begins records the generation in which the call is made. The call drops its place, unless
// it was offered a turn to resume it.
func (s *session) begins(w *waiter, t *generation, offered *turn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.on, w.turnDone, w.resumed = t, nil, nil
	if offered == nil {
		w.znode = ""
		return
	}
	w.turnDone, w.resumed = sync.OnceFunc(func() { close(offered.done) }), &pb.Grant{Znode: w.znode}
}

// placed records the contender's place, as reported by the plugin of a generation, and
// notifies the application in a separate goroutine. The callback may make a call of the
// session. If the plugin dies, that call waits until resumePossessions has checked this
// waiter again.
func (s *session) placed(w *waiter, t *generation, p recipes.Place) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w.on != t {
		return // the call has returned, and its answer has the place
	}
	w.znode = p.Znode
	w.settle()
	if w.joined != nil {
		w.notifying.Go(func() { w.notify(p) })
	}
}

// settle records that the plugin has the contender, or that the call has returned. The caller
// holds the session's mu.
func (w *waiter) settle() {
	w.at = w.on
	if w.turnDone != nil {
		w.turnDone()
	}
}

func (s *session) returned(w *waiter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.settle()
	w.on = nil
}

// expect makes resumePossessions offer turns to a waiter, until unexpect.
func (s *session) expect(id string, w *waiter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiters[id] = w
}

func (s *session) unexpect(id string, w *waiter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.waiters, id)
	select {
	case t := <-w.turns:
		close(t.done)
	default:
	}
}

// joined passes a place to the call with that request id, if it still waits.
func (s *session) joined(t *generation, id string, p recipes.Place) {
	s.mu.Lock()
	w := s.waiters[id]
	s.mu.Unlock()
	if w != nil {
		s.placed(w, t, p)
	}
}

// place returns the place at which the contender joined, from the call's answer or error.
func place(a *pb.AcquireResponse, err error) (recipes.Place, bool) {
	if err != nil {
		return wire.PlaceOf(err)
	}
	return wire.Place(a.GetPlace()), a.GetPlace() != nil
}
