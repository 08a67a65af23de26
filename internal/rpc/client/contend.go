package client

import (
	"context"
	"fmt"
	"sync"
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

// An attempt is a call that asks for a grant.
type attempt func(ctx context.Context, requestID string) (answer, error)

// contend makes a call that asks for a grant of a recipe, by its capability's name.
// It leaves nothing in line, and nothing granted, that the caller does not know of.
// A call that gRPC failed, or that the caller stopped waiting for, is abandoned by
// its id until the plugin has taken notice.
func (s *session) contend(ctx context.Context, recipe, what string, joined func(recipes.Place), run attempt) (*grant, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	id, asked := s.requestID(), time.Now()
	a, err := s.await(ctx, id, joined, run)
	if err != nil {
		if _, said := wire.Error(err); !said {
			s.abandon(id)
		}
		return nil, s.explain(ctx, what, err)
	}
	g := newGrant(s, id, recipe, a.GetGrant())
	s.meters.Granted(ctx, recipe, time.Since(asked))
	if err := s.remember(g); err != nil { // the session's end releases it
		g.lose(fmt.Errorf("%w: %w", recipes.ErrNotHeld, err))
		return nil, fmt.Errorf("%s: granted too late: %w", what, err)
	}
	return g, nil
}

// await makes the call. While it waits, it calls joined, if not nil, as soon as the
// stream or the call itself tells the place, exactly once.
func (s *session) await(ctx context.Context, id string, joined func(recipes.Place), run attempt) (a answer, err error) {
	call := func(ctx context.Context) (err error) {
		a, err = run(ctx, id)
		return err
	}
	if joined == nil {
		err = s.try(ctx, call)
		return a, err
	}

	j := &joining{joined: joined}
	s.expect(id, j)
	err = s.try(carry.WithEarly(ctx, j.read), call)
	s.unexpect(id)
	j.telling.Wait()
	if p, ok := place(a, err); ok {
		j.tell(p)
	}
	return a, err
}

// joining is a call that waits to hear where its contender has joined.
type joining struct {
	joined  func(recipes.Place)
	once    sync.Once
	telling sync.WaitGroup // by the session's stream
}

func (j *joining) tell(p recipes.Place) { j.once.Do(func() { j.joined(p) }) }

// read is given what is known of the answer.
func (j *joining) read(part []byte) {
	if p, ok := wire.EarlyPlace(part); ok {
		j.tell(p)
	}
}

// place finds out, after the call, where the contender had joined.
func place(a answer, err error) (recipes.Place, bool) {
	if err != nil {
		return wire.PlaceOf(err)
	}
	return wire.Place(a.GetPlace()), a.GetPlace() != nil
}

func (s *session) expect(id string, j *joining) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.joins[id] = j
}

func (s *session) unexpect(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.joins, id)
}

// joined tells a place to the call that waits for it, if it still does. The application
// is called in another goroutine, because the stream has more to tell.
func (s *session) joined(id string, p recipes.Place) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if j := s.joins[id]; j != nil {
		j.telling.Go(func() { j.tell(p) })
	}
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

// remember notes a grant: when the session ends, the grant ends too.
func (s *session) remember(g *grant) error {
	s.checkClock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return s.err
	}
	s.grants[g.id] = g
	s.clock.hold(true)
	return nil
}

// forget removes a grant and returns it, or nil if it had ended.
func (s *session) forget(id string) *grant {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.grants[id]
	delete(s.grants, id)
	s.clock.hold(len(s.grants) > 0)
	return g
}
