package link

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/zkrecipes/zkrecipes/internal/rpc/carry"
	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// An acquisition is a call for one grant or for several. It is made again if its plugin ends.
type acquisition struct {
	*waiter
	s        *Session
	what, id string
	asked    time.Time

	// Of Acquire:
	ask    *pb.AcquireRequest
	answer *pb.AcquireResponse
}

// Acquire asks for a grant, and returns the grant and the answer. ask is a new request with the
// path, the dialect, the data, the try and the recipe; Acquire sets the rest. what is the operation
// in errors, and name the recipe in the metrics. On error, no waiter and no grant is left behind:
// if the plugin has not answered, the session abandons the request id in the background until the
// plugin confirms.
//
// If joined is not nil, Acquire calls it exactly once, as soon as the stream or the call
// itself delivers the place. If the plugin ends and the session continues, the call is
// repeated. A contender whose place is known keeps it.
func (s *Session) Acquire(ctx context.Context, what, name string, ask *pb.AcquireRequest, joined func(recipes.Place)) (*Grant, *pb.AcquireResponse, error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", what, err)
	}
	// Others may enter with a member of a double barrier before its place is known here.
	always := s.resumable && ask.GetDoubleBarrier() != nil
	a := &acquisition{waiter: &waiter{joined: joined, turns: make(chan turn, 1), always: always}, s: s, what: what, id: s.RequestID(), asked: time.Now(), ask: ask}
	ask.Session, ask.RequestId = s.handle, a.id
	ask.Announce = joined != nil || s.resumable // the next plugin may have to resume the contender
	s.expect(a.id, a.waiter)
	defer func() {
		s.unexpect(a.id, a.waiter) // must come first: until then the next plugin does not serve the session, and joined may make a call of it
		a.notifying.Wait()
	}()
	for {
		err := s.call(ctx, Options{waiter: a.waiter, abandonID: a.id}, a.call)
		if e, answered := wire.Error(err); answered && a.resumed != nil && (errors.Is(e, recipes.ErrUnsupported) || ask.GetTry() && errors.Is(e, recipes.ErrRemoved)) {
			continue // the place was lost, or the try has given it up: join again
		}
		if err != nil {
			return nil, nil, s.explain(ctx, what, err)
		}
		g := s.newGrant(name, ask, a.answer.GetGrant())
		if late, err := a.admit(ctx, g); err != nil {
			return nil, nil, err
		} else if !late {
			return g, a.answer, nil
		}
	}
}

// AcquireMany asks for several grants by one call, and returns the grants and the answer. id is the
// request id of request. For each grant of an answer, granted returns a new AcquireRequest with a
// request id of its own, whose Resumed is the grant. Later requests name the grant by that id, and
// the next plugin resumes it by that request. what and name are as for Acquire. On error, no grant
// is left behind.
//
// If the plugin ends and the session continues, the call is repeated: DropRest has released what it
// had granted.
func AcquireMany[Q, A any](ctx context.Context, s *Session, what, name, id string, ask Method[Q, A], request Q, granted func(A) []*pb.AcquireRequest) ([]*Grant, A, error) {
	a := &acquisition{waiter: &waiter{turns: make(chan turn, 1)}, s: s, what: what, id: id, asked: time.Now()}
	s.expect(id, a.waiter)
	defer s.unexpect(id, a.waiter)
	for {
		var answer, none A
		err := s.call(ctx, Options{waiter: a.waiter, abandonID: id}, func(ctx context.Context) (err error) { answer, err = ask(ctx, request); return err })
		if err != nil {
			return nil, none, s.explain(ctx, what, err)
		}
		var grants []*Grant
		for _, r := range granted(answer) {
			grants = append(grants, s.newGrant(name, r, r.GetResumed()))
		}
		if late, err := a.admit(ctx, grants...); err != nil {
			return nil, none, err
		} else if !late {
			return grants, answer, nil
		}
	}
}

// newGrant returns what a plugin has granted for a request.
func (s *Session) newGrant(name string, request *pb.AcquireRequest, granted *pb.Grant) *Grant {
	return &Grant{
		s: s, id: request.GetRequestId(), recipe: name, request: request, lost: make(chan struct{}),
		token: recipes.Token(granted.GetToken()), znode: granted.GetZnode(),
	}
}

// admit makes the session hold the grants of an answer. On error, none is left behind. If they are
// late, the call must be made again: see remember.
func (a *acquisition) admit(ctx context.Context, grants ...*Grant) (late bool, err error) {
	if err := a.s.catchUp(ctx); err != nil {
		a.s.Abandon(a.id)
		return false, a.s.explain(ctx, a.what, err)
	}
	if len(grants) == 0 || slices.ContainsFunc(grants, func(g *Grant) bool { return g.token <= 0 || g.znode == "" }) {
		a.s.Abandon(a.id)
		return false, fmt.Errorf("%s: %w: the plugin's answer has no grant", a.what, recipes.ErrInternal)
	}
	late, err = a.s.remember(a.waiter, grants...)
	if late {
		return true, nil
	}
	for _, g := range grants {
		a.s.client.meters.Granted(ctx, g.recipe, time.Since(a.asked))
		if err != nil { // the session's end releases it
			g.Lose(fmt.Errorf("%w: %w", recipes.ErrNotHeld, err))
		}
	}
	if err != nil {
		return false, fmt.Errorf("%s: granted too late: %w", a.what, err)
	}
	return false, nil
}

// call makes the call. Only its goroutine sets a.on and a.resumed, so mu is not needed to read
// them.
func (a *acquisition) call(ctx context.Context) (err error) {
	if a.ask.Announce {
		ctx = carry.WithEarly(ctx, a.early)
	}
	a.answer, err = a.s.client.grants.Acquire(ctx, resuming(a.ask, a.resumed))
	if p, known := place(a.answer, err); known {
		a.s.placed(a.waiter, a.on, p)
	}
	return err
}

// early reads the place from the parts of the answer that have arrived.
func (a *acquisition) early(part []byte) {
	if p, ok := wire.EarlyPlace(part); ok {
		a.s.placed(a.waiter, a.on, p)
	}
}

// resuming returns the request that resumes the place or grant that ask requested. If resumed
// is nil, it returns ask.
func resuming(ask *pb.AcquireRequest, resumed *pb.Grant) *pb.AcquireRequest {
	if resumed == nil {
		return ask
	}
	ask = proto.CloneOf(ask)
	ask.Resumed = resumed
	return ask
}

// Abandon cancels the request with that id in the plugin, in the background.
func (s *Session) Abandon(id string) {
	s.Spawn(func() { // it does not run once the session is over: no grant is left then
		_, _, _ = Persist(s, s.client.grants.Abandon, &pb.AbandonRequest{Session: s.handle, RequestId: id})
	})
}

// remember records the grants of a call, so that the end of the session ends them too. They are
// late if their plugin has ended, and the next one has already resumed the session's other grants.
// DropRest deletes the znodes of late grants.
func (s *Session) remember(w *waiter, grants ...*Grant) (late bool, err error) {
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
func (s *Session) forget(id string) *Grant {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.owned, id)
	return s.endGrant(id)
}

// endGrant removes a grant from those that are held. The caller holds mu.
func (s *Session) endGrant(id string) *Grant {
	g := s.held[id]
	delete(s.held, id)
	s.clock.hold(len(s.held) > 0)
	return g
}

// A waiter is a call that waits for its grant, and for the place at which its contender
// joined.
type waiter struct {
	joined    func(recipes.Place) // may be nil
	notified  atomic.Bool
	notifying sync.WaitGroup // calls of joined while the call continues

	turns   chan turn // holds one: the latest turn that resumePossessions offered
	always  bool      // turns are offered even without a znode, because DropRest would undo the call's effect
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
	if w.joined != nil && w.notified.CompareAndSwap(false, true) {
		w.joined(p)
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
func (s *Session) begins(w *waiter, t *generation, offered *turn) {
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
// notifies the application in a separate goroutine. The place arrives on the session's stream, as
// an early part of the call's answer, or with the answer; only the first counts for the
// application. The callback may make a call of the session. If the plugin dies, that call waits
// until resumePossessions has checked this waiter again. Meanwhile a later report of the place
// waits for nothing.
func (s *Session) placed(w *waiter, t *generation, p recipes.Place) {
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

func (s *Session) returned(w *waiter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.settle()
	w.on = nil
}

// expect makes resumePossessions offer turns to a waiter, until unexpect.
func (s *Session) expect(id string, w *waiter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiters[id] = w
}

func (s *Session) unexpect(id string, w *waiter) {
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
func (s *Session) joined(t *generation, id string, p recipes.Place) {
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
