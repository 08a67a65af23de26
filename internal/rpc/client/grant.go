package client

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// grant is the host's half of a hold or a leadership.
type grant struct {
	s      *session
	id     string // of the request that it answers
	recipe string
	token  recipes.Token
	znode  string

	lost  chan struct{} // closed when err is set
	watch sync.Once

	mu         sync.Mutex
	err        error
	released   chan struct{} // made by the first release, closed at its end
	releaseErr error
}

func newGrant(s *session, id, recipe string, g *pb.Grant) *grant {
	return &grant{
		s: s, id: id, recipe: recipe, token: recipes.Token(g.GetToken()), znode: g.GetZnode(),
		lost: make(chan struct{}),
	}
}

func (g *grant) Token() recipes.Token { return g.token }
func (g *grant) Znode() string        { return g.znode }

func (g *grant) Done() <-chan struct{} {
	g.s.checkClock()
	g.watch.Do(func() { g.s.spawn(g.arm) })
	return g.lost
}

// arm asks the plugin to tell when the znode is deleted.
func (g *grant) arm() {
	err := g.s.persist(func(ctx context.Context) error {
		_, err := g.s.Client.grants.Watch(ctx, &pb.WatchRequest{Session: g.s.handle, RequestId: g.id})
		return err
	})
	g.judge(err)
}

func (g *grant) Err() error {
	g.s.checkClock()
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.err
}

// lose ends the grant. Only the first reason counts.
func (g *grant) lose(reason error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.err == nil {
		g.end(reason)
	}
}

// end needs mu.
func (g *grant) end(reason error) {
	g.err = reason
	close(g.lost)
	g.s.meters.Ended(g.recipe, reason)
}

// judge notices that the plugin says that the grant does not stand.
func (g *grant) judge(err error) {
	if errors.Is(err, recipes.ErrNotHeld) && !errors.Is(err, recipes.ErrSessionLost) {
		g.s.forget(g.id)
		g.lose(err)
	}
}

func (g *grant) Write(ctx context.Context, ops ...recipes.Op) error {
	for i, op := range ops {
		if err := op.Validate(); err != nil {
			return fmt.Errorf("guarded write: operation %d: %w", i, err)
		}
	}
	return g.change(ctx, "guarded write", ops, func(ctx context.Context) error {
		_, err := g.s.Client.grants.Write(ctx, &pb.WriteRequest{
			Session: g.s.handle, RequestId: g.id, Ops: wire.ToOps(ops),
		})
		return err
	})
}

// change is session.change for what is done in the grant's name.
func (g *grant) change(ctx context.Context, what string, ops []recipes.Op, rpc func(context.Context) error) error {
	if err := g.Err(); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	err := g.s.try(ctx, rpc)
	if err == nil {
		return nil
	}
	e, said := wire.WriteError(err, ops)
	var refused *recipes.WriteError
	if errors.As(e, &refused) {
		return refused
	}
	if said {
		g.judge(e)
	}
	err = g.s.explainChange(ctx, what, err)
	if errors.Is(err, recipes.ErrUnknownOutcome) {
		return err
	}
	return notHeld(err)
}

// release gives the grant back. It is the session's work and goes on when ctx ends.
// But it begins in the caller's goroutine: the next contender waits for it, and
// starting another goroutine first would cost a wake-up.
func (g *grant) release(ctx context.Context) error {
	first, err := g.startRelease()
	if err != nil {
		return fmt.Errorf("release %s: %w", g.znode, err)
	}
	if first {
		g.s.forget(g.id)
		g.tryRelease(ctx)
	}
	if err := outcome(ctx, g.released, &g.releaseErr); err != nil {
		return fmt.Errorf("release %s: %w", g.znode, err)
	}
	return nil
}

// outcome waits for what is set before done is closed, as long as ctx lasts.
func outcome(ctx context.Context, done <-chan struct{}, err *error) error {
	select {
	case <-done:
		return *err
	case <-ctx.Done():
	}
	select {
	case <-done: // both: the answer is worth more
		return *err
	default:
		return ctx.Err()
	}
}

// startRelease closes Done, and reports whether this is the first release; an
// error says that the grant had been lost before.
func (g *grant) startRelease() (first bool, err error) {
	g.s.checkClock()
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.released != nil:
		return false, nil
	case g.err != nil:
		return false, g.err
	}
	g.released = make(chan struct{})
	g.end(recipes.ErrReleased)
	return true, nil
}

// tryRelease tells the plugin. If that is not answered before ctx ends, the session
// goes on with it.
func (g *grant) tryRelease(ctx context.Context) {
	err := g.s.try(ctx, g.rpcRelease)
	e, said := wire.Error(err)
	if err == nil || said && !errors.Is(e, context.Canceled) && !errors.Is(e, context.DeadlineExceeded) {
		g.endRelease(e)
		return
	}
	work := func() { g.endRelease(g.s.persist(g.rpcRelease)) }
	if !g.s.spawn(work) {
		work() // the session is ending: it returns when it has
	}
}

func (g *grant) rpcRelease(ctx context.Context) error {
	_, err := g.s.Client.grants.Release(ctx, &pb.ReleaseRequest{Session: g.s.handle, RequestId: g.id})
	return err
}

// endRelease notes what the plugin has said, or why the session has ended.
func (g *grant) endRelease(err error) {
	g.releaseErr = notHeld(err)
	close(g.released)
}

// notHeld adds to the loss of the session what it means for a grant.
func notHeld(err error) error {
	if errors.Is(err, recipes.ErrSessionLost) && !errors.Is(err, recipes.ErrNotHeld) {
		return fmt.Errorf("%w: %w", recipes.ErrNotHeld, err)
	}
	return err
}
