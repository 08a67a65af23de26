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
// the like have in common.
type answer interface {
	GetGrant() *pb.Grant
	GetPlace() *pb.Place
}

// unplaced is the answer to a call that asks for a grant outside of any line.
type unplaced struct {
	response interface{ GetGrant() *pb.Grant }
}

func (u unplaced) GetGrant() *pb.Grant { return u.response.GetGrant() }
func (u unplaced) GetPlace() *pb.Place { return nil }

// An attempt is a call that asks for a grant. had is what it has to take up in a session
// that was resumed, or nil.
type attempt func(ctx context.Context, requestID string, had *pb.Grant) (answer, error)

// contend makes a call that asks for a grant of a recipe, by its capability's name.
// It leaves nothing in line, and nothing granted, that the caller does not know of.
// A call that gRPC failed, or that the caller stopped waiting for, is abandoned by
// its id until the plugin has taken notice.
//
// When the plugin ends and the session goes on, the call is repeated. A contender whose
// place is known keeps it. run can take up a
// grant.
func (s *session) contend(ctx context.Context, recipe, what string, joined func(recipes.Place), run attempt) (*grant, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	id, asked := s.requestID(), time.Now()
	j := newJoining(joined)
	s.expect(id, j)
	defer s.unexpect(id, j)
	for {
		a, t, err := s.await(ctx, id, j, run)
		if err != nil {
			if _, said := wire.Error(err); !said {
				s.abandon(id)
			}
			return nil, s.explain(ctx, what, err)
		}
		if a.GetGrant().GetToken() <= 0 || a.GetGrant().GetZnode() == "" {
			s.abandon(id)
			return nil, fmt.Errorf("%s: %w: the plugin's answer has no grant", what, recipes.ErrInternal)
		}
		g := newGrant(s, id, recipe, a.GetGrant())
		g.ask = run
		if err := s.catchUp(ctx); err != nil {
			s.abandon(id)
			return nil, s.explain(ctx, what, err)
		}
		late, err := s.remember(g, t)
		if late {
			continue
		}
		s.meters.Granted(ctx, recipe, time.Since(asked))
		if err != nil { // the session's end releases it
			g.lose(fmt.Errorf("%w: %w", recipes.ErrNotHeld, err))
			return nil, fmt.Errorf("%s: granted too late: %w", what, err)
		}
		return g, nil
	}
}

// await makes the call, and again while its plugins end. As soon as the stream or the
// call itself tells the place, it calls joined, if there is one, exactly once.
func (s *session) await(ctx context.Context, id string, j *joining, run attempt) (a answer, t *tenure, err error) {
	for {
		var had *pb.Grant
		if t, had, err = s.next(ctx, j); err != nil {
			break
		}
		made := ctx
		if s.announces(j.joined) {
			made = carry.WithEarly(ctx, func(part []byte) { s.read(j, t, part) })
		}
		err = s.in(made, t, 0, func(ctx context.Context) (err error) {
			a, err = run(ctx, id, had)
			return err
		})
		s.answered(j)
		e, _ := wire.Error(err)
		lostPlace := had != nil && errors.Is(e, recipes.ErrUnsupported) // and gets another one
		if !lostPlace && !s.outlived(ctx, t, err) {
			break
		}
	}
	j.telling.Wait()
	if p, ok := place(a, err); ok {
		j.tell(p)
	}
	return a, t, err
}

// announces reports whether a contender wants to be told its place: because somebody
// asks for it, or because it may have to be taken up.
func (s *session) announces(joined func(recipes.Place)) bool {
	return joined != nil || s.resumable
}

// abandon tells the plugin, in the background, that what a call asked for is
// not wanted.
func (s *session) abandon(id string) {
	s.spawn(func() { // not run at all when the session is over: so is the claim
		_ = s.persist(func(ctx context.Context) error {
			_, err := s.Client.grants.Abandon(ctx, &pb.AbandonRequest{Session: s.handle, RequestId: id})
			return err
		})
	})
}

// remember notes a grant: when the session ends, the grant ends too. A grant is late if it
// comes from a plugin that has ended, and the next one has taken up all that it was given.
// DropRest deletes it then.
func (s *session) remember(g *grant, t *tenure) (late bool, err error) {
	s.checkClock()
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.err != nil:
		return false, s.err
	case t != s.owner && t != s.taker:
		return true, nil
	}
	g.at = t
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
// knows it, and the next one takes it up.
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
