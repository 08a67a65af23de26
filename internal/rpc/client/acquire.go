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

// answer is what the responses to LockService.Acquire, ElectionService.Campaign and
// the like have in common. If there is a line, it also has a place.
type answer interface{ GetGrant() *pb.Grant }

// An acquirer makes a call that asks for a grant. had is what it has to resume in a session
// that was resumed, or nil.
type acquirer func(ctx context.Context, requestID string, had *pb.Grant) (answer, error)

// acquire makes a call that asks for a grant, by the name of its capability. It leaves
// nothing in line, and nothing granted, that the caller does not know of. A call that gRPC
// failed, or that the caller stopped waiting for, is abandoned by its id until the plugin
// has taken notice.
//
// As soon as the stream or the call itself tells the place, it calls joined, if there is
// one, exactly once. When the plugin ends and the session goes on, the call is repeated. A
// contender whose place is known keeps it.
func (r recipe) acquire(ctx context.Context, capability string, joined func(recipes.Place), ask acquirer) (*grant, error) {
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
			if t := w.on; s.announces(joined) { // only this call sets it
				ctx = carry.WithEarly(ctx, func(part []byte) {
					if p, ok := wire.EarlyPlace(part); ok {
						s.placed(w, t, p)
					}
				})
			}
			a, err = ask(ctx, id, w.had)
			return err
		})
		if e, said := wire.Error(err); said && w.had != nil && errors.Is(e, recipes.ErrUnsupported) {
			continue // it has lost its place, and gets another one
		}
		w.telling.Wait()
		if p, ok := place(a, err); ok {
			w.tell(p)
		}
		if err == nil {
			err = s.catchUp(ctx)
		}
		if err != nil {
			if _, said := wire.Error(err); !said {
				s.abandon(id)
			}
			return nil, s.explain(ctx, r.what, err)
		}
		if a.GetGrant().GetToken() <= 0 || a.GetGrant().GetZnode() == "" {
			s.abandon(id)
			return nil, fmt.Errorf("%s: %w: the plugin's answer has no grant", r, recipes.ErrInternal)
		}
		g := &grant{
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

// announces reports whether a contender wants to be told its place: because somebody
// asks for it, or because it may have to be resumed.
func (s *session) announces(joined func(recipes.Place)) bool {
	return joined != nil || s.resumable
}

// abandon tells the plugin, in the background, that what a call asked for is
// not wanted.
func (s *session) abandon(id string) {
	s.spawn(func() { // not run at all when the session is over: so is the claim
		_ = s.persist(s.over, way{counted: true}, func(ctx context.Context) error {
			_, err := s.Client.grants.Abandon(ctx, &pb.AbandonRequest{Session: s.handle, RequestId: id})
			return err
		})
	})
}

// remember notes a grant: when the session ends, the grant ends too. A grant is late if it
// comes from a plugin that has ended, and the next one has resumed all that it was given.
// DropRest deletes it then.
func (s *session) remember(g *grant, w *waiter) (late bool, err error) {
	s.checkClock()
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.err != nil:
		return false, s.err
	case w.at != s.owner && w.at != s.taker:
		return true, nil
	}
	g.at = w.at
	s.grants[g.id], s.owned[g.id] = g, g
	s.clock.hold(true)
	return false, nil
}

// forget removes a grant that has ended and returns it, or nil if it had ended.
func (s *session) forget(id string) *grant {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.owned, id)
	return s.endGrant(id)
}

// concede removes a grant that is about to be given back. Until that is done, the plugin
// knows it, and the next one resumes it.
func (s *session) concede(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endGrant(id)
}

// endGrant needs mu.
func (s *session) endGrant(id string) *grant {
	g := s.grants[id]
	delete(s.grants, id)
	s.clock.hold(len(s.grants) > 0)
	return g
}
