package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// remoteGrant is the host's half of a grant that the plugin's session holds.
type remoteGrant struct {
	s      *session
	id     string // the request id of the call that asked for it
	recipe string
	token  recipes.Token
	znode  string

	lost  chan struct{} // closed when err is set
	watch sync.Once

	location
	// Under the session's mu:
	request *pb.AcquireRequest // what asked for it, and resumes it in another plugin
	watched bool               // the plugin reports its loss

	mu      sync.Mutex
	err     error
	release *release // the latest; nil before the first
}

// A release is one attempt to release a grant.
type release struct {
	lost error         // why the grant had ended before the release; its znode may still exist
	done chan struct{} // closed when err is set
	err  error
}

// refused reports whether the attempt failed and the znode may still exist.
func (r *release) refused() bool {
	select {
	case <-r.done:
		return r.err != nil && !errors.Is(r.err, recipes.ErrNotHeld)
	default:
		return false
	}
}

func (g *remoteGrant) Token() recipes.Token { return g.token }
func (g *remoteGrant) Znode() string        { return g.znode }

func (g *remoteGrant) Done() <-chan struct{} {
	g.s.checkClock()
	g.watch.Do(func() { g.s.spawn(g.arm) })
	return g.lost
}

// arm asks the plugin to report the deletion of the znode.
func (g *remoteGrant) arm() {
	g.s.mu.Lock()
	g.watched = true
	g.s.mu.Unlock()
	g.judge(g.s.persist(g.s.over, callOptions{awaited: true}, func(ctx context.Context) error {
		_, err := g.s.grants.Watch(ctx, &pb.WatchRequest{Session: g.s.handle, RequestId: g.id})
		return err
	}))
}

func (g *remoteGrant) Err() error {
	g.s.checkClock()
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.err
}

func (g *remoteGrant) ValidUntil() time.Time {
	if g.Err() != nil {
		return time.Time{}
	}
	return g.s.clock.provedUntil()
}

// lose ends the grant. Only the first reason counts.
func (g *remoteGrant) lose(reason error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.err == nil {
		g.end(reason)
	}
}

// end ends the grant. The caller holds mu.
func (g *remoteGrant) end(reason error) {
	g.err = reason
	close(g.lost)
	g.s.meters.Ended(g.recipe, reason)
}

// judge ends the grant if err is the plugin's answer that it is no longer held.
func (g *remoteGrant) judge(err error) {
	if errors.Is(err, recipes.ErrNotHeld) && !errors.Is(err, recipes.ErrSessionLost) {
		g.s.forget(g.id)
		g.lose(err)
	}
}

func (g *remoteGrant) Write(ctx context.Context, ops ...recipes.Op) error {
	var sent []recipes.Op // a Held of several grants is sent as one of each
	var ids []string      // the request ids of those grants, and ""
	var of []int          // the operations of ops
	for i, op := range ops {
		err := op.Validate()
		if op.Grants() == nil {
			sent, ids, of = append(sent, op), append(ids, ""), append(of, i)
		}
		for _, other := range op.Grants() {
			id, unknown := g.beside(other)
			err = cmp.Or(err, unknown)
			sent, ids, of = append(sent, recipes.Held(other)), append(ids, id), append(of, i)
		}
		if err != nil {
			return fmt.Errorf("guarded write: operation %d: %w", i, err)
		}
	}
	messages := wire.ToOps(sent)
	for i, id := range ids {
		messages[i].RequestId = id
	}
	err := writeAs(ctx, g, "guarded write", g.s.grants.Write, &pb.WriteRequest{Session: g.s.handle, RequestId: g.id, Ops: messages}, sent...)
	refused, ok := errors.AsType[*recipes.WriteError](err)
	if !ok {
		return err
	}
	for _, other := range refused.Op.Grants() {
		other.(remote).grant().judge(refused.Err)
	}
	i := of[refused.Index]
	return &recipes.WriteError{Index: i, Op: ops[i], Err: refused.Err}
}

// remote is implemented by all that embeds a remoteGrant.
type remote interface{ grant() *remoteGrant }

func (g *remoteGrant) grant() *remoteGrant { return g }

// beside returns the request id of another grant of the session.
func (g *remoteGrant) beside(other recipes.Grant) (id string, err error) {
	r, ok := other.(remote)
	if !ok || r.grant().s != g.s {
		return "", fmt.Errorf("%w: %s is not a grant of this session", recipes.ErrInvalid, other.Znode())
	}
	return r.grant().id, nil
}

// releaseGrant releases the grant. The release continues when ctx ends. The first call is
// made in the caller's goroutine: the next contender waits for it, and starting another
// goroutine first would cost a wake-up.
func (g *remoteGrant) releaseGrant(ctx context.Context) error {
	r, first, err := g.startRelease()
	if err != nil {
		return fmt.Errorf("release %s: %w", g.znode, err)
	}
	if first {
		g.s.unhold(g.id)
		g.tryRelease(ctx, r)
	}
	if err := outcome(ctx, r.done, &r.err); err != nil {
		return fmt.Errorf("release %s: %w", g.znode, err)
	}
	return nil
}

// outcome waits until done is closed and returns *err, which is set before that. It returns
// earlier if ctx ends.
func outcome(ctx context.Context, done <-chan struct{}, err *error) error {
	select {
	case <-done:
		return *err
	case <-ctx.Done():
	}
	select {
	case <-done: // both have happened: return the answer
		return *err
	default:
		return ctx.Err()
	}
}

// startRelease closes Done, and returns the current attempt. first reports whether the caller
// must carry the attempt out: it is the first one, or the earlier ones were refused. An error
// is the reason why the grant was lost before; its znode is known to be deleted then.
func (g *remoteGrant) startRelease() (r *release, first bool, err error) {
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

// unexplained reports whether err means that a grant is not held, but not that its znode is
// deleted.
func unexplained(err error) bool {
	return errors.Is(err, recipes.ErrNotHeld) && !errors.Is(err, recipes.ErrRemoved) &&
		!errors.Is(err, recipes.ErrReleased) && !errors.Is(err, recipes.ErrSessionLost)
}

// tryRelease sends the release to the plugin. If ctx ends before the answer, a goroutine of
// the session continues.
func (g *remoteGrant) tryRelease(ctx context.Context, r *release) {
	t, err := g.s.send(ctx, callOptions{awaited: true}, g.rpcRelease)
	e, answered := wire.Error(err)
	// If gRPC failed the call, it is repeated at once: the next contender waits.
	if err == nil || answered && !errors.Is(e, context.Canceled) && !errors.Is(e, context.DeadlineExceeded) && !g.s.outlived(ctx, t, err) {
		g.released(r, e)
		return
	}
	work := func() { g.released(r, forgotten(g.s.persist(g.s.over, callOptions{awaited: true}, g.rpcRelease))) }
	if !g.s.spawn(work) {
		work() // the session is ending: the call returns when it has ended
	}
}

// forgotten is used for the answer to a repeated release. It returns nil if the plugin does
// not know the grant: then the earlier attempt has released it. The plugin remembers a limited
// number of ended grants; for a remembered grant, the answer names the reason.
func forgotten(err error) error {
	if unexplained(err) {
		return nil
	}
	return err
}

func (g *remoteGrant) rpcRelease(ctx context.Context) error {
	_, err := g.s.grants.Release(ctx, &pb.ReleaseRequest{Session: g.s.handle, RequestId: g.id})
	return err
}

func (g *remoteGrant) released(r *release, err error) {
	if err == nil || errors.Is(err, recipes.ErrNotHeld) {
		g.s.forget(g.id)
	}
	// err is the plugin's answer, or the reason why the session has ended.
	r.err = notHeld(err)
	if err == nil && r.lost != nil {
		r.err = r.lost
	}
	close(r.done)
}

// notHeld adds ErrNotHeld to the loss of the session.
func notHeld(err error) error {
	if errors.Is(err, recipes.ErrSessionLost) && !errors.Is(err, recipes.ErrNotHeld) {
		return fmt.Errorf("%w: %w", recipes.ErrNotHeld, err)
	}
	return err
}
