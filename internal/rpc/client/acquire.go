package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/rpc/carry"
	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// answer is the common part of the responses to LockService.Acquire, ElectionService.Campaign
// and similar calls. Recipes with a wait queue also return a place.
type answer interface{ GetGrant() *pb.Grant }

// An acquirer makes a call that asks for a grant. In a resumed session, resumed is the place
// or grant to resume; otherwise it is nil.
type acquirer func(ctx context.Context, requestID string, resumed *pb.Grant) (answer, error)

// acquire makes a call that asks for a grant. capability names the recipe. On error, no
// waiter and no grant is left behind. If gRPC failed the call, or the caller stopped waiting,
// the session abandons the request id in the background until the plugin confirms.
//
// If joined is not nil, acquire calls it exactly once, as soon as the stream or the call
// itself delivers the place. If the plugin ends and the session continues, the call is
// repeated. A contender whose place is known keeps it.
func (r recipe) acquire(ctx context.Context, capability string, joined func(recipes.Place), ask acquirer) (*remoteGrant, error) {
	if err := r.speaks(ctx); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", r, err)
	}
	s, w := r.s, &waiter{joined: joined, turns: make(chan turn, 1)}
	id, asked := s.requestID(), time.Now()
	s.expect(id, w)
	defer s.unexpect(id, w)
	for {
		var a answer
		err := s.complete(ctx, way{waiter: w}, func(ctx context.Context) (err error) {
			if t := w.on; s.announces(joined) { // mu is not needed: only this goroutine sets w.on
				ctx = carry.WithEarly(ctx, func(part []byte) {
					if p, ok := wire.EarlyPlace(part); ok {
						s.placed(w, t, p)
					}
				})
			}
			a, err = ask(ctx, id, w.resumed)
			return err
		})
		if e, answered := wire.Error(err); answered && w.resumed != nil && errors.Is(e, recipes.ErrUnsupported) {
			continue // the place is lost: join again
		}
		w.notifying.Wait()
		if p, ok := place(a, err); ok {
			w.notify(p)
		}
		if err == nil {
			err = s.catchUp(ctx)
		}
		if err != nil {
			if _, answered := wire.Error(err); !answered {
				s.abandon(id)
			}
			return nil, s.explain(ctx, r.what, err)
		}
		if a.GetGrant().GetToken() <= 0 || a.GetGrant().GetZnode() == "" {
			s.abandon(id)
			return nil, fmt.Errorf("%s: %w: the plugin's answer has no grant", r, recipes.ErrInternal)
		}
		g := &remoteGrant{
			s: s, id: id, recipe: capability, ask: ask, lost: make(chan struct{}),
			token: recipes.Token(a.GetGrant().GetToken()), znode: a.GetGrant().GetZnode(),
		}
		late, err := s.remember(g, w)
		if late {
			continue
		}
		s.meters.Granted(ctx, capability, time.Since(asked))
		if err != nil { // the session's end releases it
			g.lose(fmt.Errorf("%w: %w", recipes.ErrNotHeld, err))
			return nil, fmt.Errorf("%s: granted too late: %w", r, err)
		}
		return g, nil
	}
}

// announces reports whether the plugin should announce a contender's place: the application
// has asked for it, or the next plugin may have to resume the contender.
func (s *session) announces(joined func(recipes.Place)) bool {
	return joined != nil || s.resumable
}

// abandon cancels the request with that id in the plugin, in the background.
func (s *session) abandon(id string) {
	s.spawn(func() { // it does not run once the session is over: no grant is left then
		_ = s.persist(s.over, way{counted: true}, func(ctx context.Context) error {
			_, err := s.grants.Abandon(ctx, &pb.AbandonRequest{Session: s.handle, RequestId: id})
			return err
		})
	})
}

// remember records a grant, so that the end of the session ends it too. A grant is late if
// its plugin has ended, and the next one has already resumed the session's other grants.
// DropRest deletes the znode of a late grant.
func (s *session) remember(g *remoteGrant, w *waiter) (late bool, err error) {
	s.checkClock()
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.err != nil:
		return false, s.err
	case w.at != s.owner && w.at != s.resuming:
		return true, nil
	}
	g.at = w.at
	s.held[g.id], s.owned[g.id] = g, g
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
