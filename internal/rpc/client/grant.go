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

	ask   acquirer      // that resumes it in another plugin
	lost  chan struct{} // closed when err is set
	watch sync.Once

	home
	watched bool // its loss is to be told; under the session's mu

	mu      sync.Mutex
	err     error
	release *release // the latest; nil before the first
}

// A release is one try to give the grant back.
type release struct {
	lost error         // why the grant had ended before, though its znode may be there
	done chan struct{} // closed when err is set
	err  error
}

// refused reports whether the grant is still there to be given back.
func (r *release) refused() bool {
	select {
	case <-r.done:
		return r.err != nil && !errors.Is(r.err, recipes.ErrNotHeld)
	default:
		return false
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
	g.s.mu.Lock()
	g.watched = true
	g.s.mu.Unlock()
	g.judge(g.s.persist(g.s.over, way{counted: true}, func(ctx context.Context) error {
		_, err := g.s.Client.grants.Watch(ctx, &pb.WatchRequest{Session: g.s.handle, RequestId: g.id})
		return err
	}))
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
	return writeAs(ctx, g, "guarded write", g.s.Client.grants.Write,
		&pb.WriteRequest{Session: g.s.handle, RequestId: g.id, Ops: wire.ToOps(ops)}, ops...)
}

// giveBack gives the grant back. It is the session's work and goes on when ctx ends.
// But it begins in the caller's goroutine: the next contender waits for it, and
// starting another goroutine first would cost a wake-up.
func (g *grant) giveBack(ctx context.Context) error {
	r, first, err := g.startRelease()
	if err != nil {
		return fmt.Errorf("release %s: %w", g.znode, err)
	}
	if first {
		g.s.concede(g.id)
		g.tryRelease(ctx, r)
	}
	if err := outcome(ctx, r.done, &r.err); err != nil {
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

// startRelease closes Done. It returns the release that counts, and whether the
// caller has to carry it out: it is the first one, or those before were refused. An
// error says that the grant had been lost before, with its znode.
func (g *grant) startRelease() (r *release, first bool, err error) {
	g.s.checkClock()
	g.mu.Lock()
	defer g.mu.Unlock()
	var lost error
	switch {
	case g.release != nil && !g.release.refused():
		return g.release, false, nil
	case g.release != nil:
		lost = g.release.lost
	case g.err == nil:
		g.end(recipes.ErrReleased)
	case !unexplained(g.err):
		return nil, false, g.err
	default:
		lost = g.err
	}
	g.release = &release{lost: lost, done: make(chan struct{})}
	return g.release, true, nil
}

// unexplained reports whether err says that a grant does not stand, and not what has
// become of its znode.
func unexplained(err error) bool {
	return errors.Is(err, recipes.ErrNotHeld) && !errors.Is(err, recipes.ErrRemoved) &&
		!errors.Is(err, recipes.ErrReleased) && !errors.Is(err, recipes.ErrSessionLost)
}

// tryRelease tells the plugin. If that is not answered before ctx ends, the session
// goes on with it.
func (g *grant) tryRelease(ctx context.Context, r *release) {
	t, err := g.s.send(ctx, way{counted: true}, g.rpcRelease)
	e, said := wire.Error(err)
	// Where gRPC failed it goes on at once: the next contender waits.
	if err == nil || said && !errors.Is(e, context.Canceled) && !errors.Is(e, context.DeadlineExceeded) && !g.s.outlived(ctx, t, err) {
		g.released(r, e)
		return
	}
	work := func() { g.released(r, forgotten(g.s.persist(g.s.over, way{counted: true}, g.rpcRelease))) }
	if !g.s.spawn(work) {
		work() // the session is ending: it returns when it has
	}
}

// forgotten is err, the answer to a call that gives something back and was sent
// before. The plugin remembers grants that have ended for a while, and names the
// reason. Where it knows nothing any more, the call before has done it.
func forgotten(err error) error {
	if unexplained(err) {
		return nil
	}
	return err
}

func (g *grant) rpcRelease(ctx context.Context) error {
	_, err := g.s.Client.grants.Release(ctx, &pb.ReleaseRequest{Session: g.s.handle, RequestId: g.id})
	return err
}

// released notes the end of a try to give the grant back.
func (g *grant) released(r *release, err error) {
	if err == nil || errors.Is(err, recipes.ErrNotHeld) {
		g.s.forget(g.id)
	}
	r.end(err)
}

// end notes what the plugin has said, or why the session has ended.
func (r *release) end(err error) {
	r.err = notHeld(err)
	if err == nil && r.lost != nil {
		r.err = r.lost
	}
	close(r.done)
}

// notHeld adds to the loss of the session what it means for a grant.
func notHeld(err error) error {
	if errors.Is(err, recipes.ErrSessionLost) && !errors.Is(err, recipes.ErrNotHeld) {
		return fmt.Errorf("%w: %w", recipes.ErrNotHeld, err)
	}
	return err
}
