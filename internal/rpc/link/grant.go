package link

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// Grant is the host's half of a grant that the plugin's session holds.
type Grant struct {
	s      *Session
	id     string // the request id of the call that asked for it
	recipe string
	token  recipes.Token
	znode  string

	lost  chan struct{} // closed when err is set
	watch sync.Once

	location
	// Under the session's mu:
	request *pb.AcquireRequest // the request that asked for it, and that resumes it in another plugin
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

// Session returns the session that holds the grant.
func (g *Grant) Session() *Session { return g.s }

// ID returns the request id of the call that asked for the grant. Later requests name it.
func (g *Grant) ID() string { return g.id }

// Request returns a copy of the request that asked for the grant.
func (g *Grant) Request() *pb.AcquireRequest {
	g.s.mu.Lock()
	defer g.s.mu.Unlock()
	return proto.CloneOf(g.request)
}

func (g *Grant) Token() recipes.Token { return g.token }
func (g *Grant) Znode() string        { return g.znode }

func (g *Grant) Done() <-chan struct{} {
	g.s.checkClock()
	g.watch.Do(func() { g.s.Spawn(g.watchLoss) })
	return g.lost
}

// watchLoss asks the plugin to report the deletion of the znode.
func (g *Grant) watchLoss() {
	g.s.mu.Lock()
	g.watched = true
	g.s.mu.Unlock()
	_, _, err := Persist(g.s, g.s.client.grants.Watch, &pb.WatchRequest{Session: g.s.handle, RequestId: g.id})
	g.EndIfNotHeld(err)
}

func (g *Grant) Err() error {
	g.s.checkClock()
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.err
}

func (g *Grant) ValidUntil() time.Time {
	if g.Err() != nil {
		return time.Time{}
	}
	return g.s.clock.provedUntil()
}

// Lose ends the grant in this process. Only the first reason counts.
func (g *Grant) Lose(reason error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.err == nil {
		g.end(reason)
	}
}

// end ends the grant. The caller holds mu.
func (g *Grant) end(reason error) {
	g.err = reason
	close(g.lost)
	g.s.client.meters.Ended(g.recipe, reason)
}

// End ends the grant locally, before the call that ends it in the plugin. If it has already
// ended, End returns the reason. Until Forget, the next plugin resumes the grant.
func (g *Grant) End() error {
	if err := g.Err(); err != nil {
		return err
	}
	g.Lose(recipes.ErrReleased)
	if err := g.Err(); !errors.Is(err, recipes.ErrReleased) {
		return err
	}
	g.removeHeld()
	return nil
}

// Forget records that the plugin no longer has the grant, so the next one does not resume it.
func (g *Grant) Forget() { g.s.removeGrant(g.id) }

// removeHeld removes a grant that is about to be released from those that are held. It stays
// among the possessions until the release is done, so the next plugin still resumes it.
func (g *Grant) removeHeld() {
	g.s.mu.Lock()
	defer g.s.mu.Unlock()
	g.s.endGrant(g.id)
}

// setLeaving makes the next plugin resume the grant by the request leaving, which tells it that the
// grant is about to end.
func (g *Grant) setLeaving(leaving *pb.AcquireRequest) {
	g.s.mu.Lock()
	defer g.s.mu.Unlock()
	g.request = leaving
	g.s.endGrant(g.id)
}

// EndIfNotHeld ends the grant if err is the plugin's answer that it is no longer held.
func (g *Grant) EndIfNotHeld(err error) {
	if errors.Is(err, recipes.ErrNotHeld) && !errors.Is(err, recipes.ErrSessionLost) {
		g.Forget()
		g.Lose(err)
	}
}

func (g *Grant) Write(ctx context.Context, ops ...recipes.Op) error {
	var sent []recipes.Op // a Held of several grants is sent as one Held for each
	var ids []string      // the request ids of those grants, and ""
	var of []int          // indexes of the operations in ops
	for i, op := range ops {
		err := op.Validate()
		if op.Grants() == nil {
			sent, ids, of = append(sent, op), append(ids, ""), append(of, i)
		}
		for _, other := range op.Grants() {
			id, unknown := g.requestIDOf(other)
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
	err := WriteAs(ctx, g, "guarded write", g.s.client.grants.Write, &pb.WriteRequest{Session: g.s.handle, RequestId: g.id, Ops: messages}, sent...)
	refused, ok := errors.AsType[*recipes.WriteError](err)
	if !ok {
		return err
	}
	for _, other := range refused.Op.Grants() {
		other.(remote).grant().EndIfNotHeld(refused.Err)
	}
	i := of[refused.Index]
	return &recipes.WriteError{Index: i, Op: ops[i], Err: refused.Err}
}

// remote is implemented by all that embeds a Grant.
type remote interface{ grant() *Grant }

func (g *Grant) grant() *Grant { return g }

// requestIDOf returns the request id of another grant of the session.
func (g *Grant) requestIDOf(other recipes.Grant) (id string, err error) {
	r, ok := other.(remote)
	if !ok || r.grant().s != g.s {
		return "", fmt.Errorf("%w: %s is not a grant of this session", recipes.ErrInvalid, other.Znode())
	}
	return r.grant().id, nil
}

// ReleaseGrant releases the grant. The release continues when ctx ends. The first call is
// made in the caller's goroutine: the next contender waits for it, and starting another
// goroutine first would cost a wake-up.
func (g *Grant) ReleaseGrant(ctx context.Context) error {
	r, first, err := g.startRelease()
	if err != nil {
		return fmt.Errorf("release %s: %w", g.znode, err)
	}
	if first {
		g.removeHeld()
		g.tryRelease(ctx, r)
	}
	if err := Outcome(ctx, r.done, &r.err); err != nil {
		return fmt.Errorf("release %s: %w", g.znode, err)
	}
	return nil
}

// Outcome waits until done is closed and returns *err, which is set before that. It returns
// earlier if ctx ends.
func Outcome(ctx context.Context, done <-chan struct{}, err *error) error {
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
func (g *Grant) startRelease() (r *release, first bool, err error) {
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
	case !Unexplained(g.err):
		return nil, false, g.err
	default:
		lost = g.err
	}
	g.release = &release{lost: lost, done: make(chan struct{})}
	return g.release, true, nil
}

// Unexplained reports whether err means that the grant is lost, but its znode may still
// exist.
func Unexplained(err error) bool {
	return errors.Is(err, recipes.ErrNotHeld) && !errors.Is(err, recipes.ErrRemoved) &&
		!errors.Is(err, recipes.ErrReleased) && !errors.Is(err, recipes.ErrSessionLost)
}

// tryRelease sends the release to the plugin. If ctx ends before the answer, a goroutine of
// the session continues.
func (g *Grant) tryRelease(ctx context.Context, r *release) {
	gen, err := g.s.send(ctx, Options{awaited: true}, g.rpcRelease)
	e, answered := wire.Error(err)
	// If gRPC failed the call, it is repeated at once: the next contender waits.
	if err == nil || answered && !errors.Is(e, context.Canceled) && !errors.Is(e, context.DeadlineExceeded) && !g.s.pluginEnded(ctx, gen, err) {
		g.released(r, e)
		return
	}
	g.s.Go(func() { // if the session is ending, the call returns when it has ended
		g.released(r, IgnoreForgotten(g.s.persist(g.s.over, Options{awaited: true}, g.rpcRelease)))
	})
}

// IgnoreForgotten is used for the answer to a repeated release. It returns nil if the plugin does
// not know the grant: then the earlier attempt has released it. The plugin remembers a limited
// number of ended grants; for a remembered grant, the answer names the reason.
func IgnoreForgotten(err error) error {
	if Unexplained(err) {
		return nil
	}
	return err
}

func (g *Grant) rpcRelease(ctx context.Context) error {
	_, err := g.s.client.grants.Release(ctx, &pb.ReleaseRequest{Session: g.s.handle, RequestId: g.id})
	return err
}

func (g *Grant) released(r *release, err error) {
	if err == nil || errors.Is(err, recipes.ErrNotHeld) {
		g.Forget()
	}
	// err is the plugin's answer, or the reason why the session has ended.
	r.err = NotHeld(err)
	if err == nil && r.lost != nil {
		r.err = r.lost
	}
	close(r.done)
}

// NotHeld adds ErrNotHeld to the loss of the session.
func NotHeld(err error) error {
	if errors.Is(err, recipes.ErrSessionLost) && !errors.Is(err, recipes.ErrNotHeld) {
		return fmt.Errorf("%w: %w", recipes.ErrNotHeld, err)
	}
	return err
}
