package server

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/zkrecipes/zkrecipes/internal/rpc/carry"
	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// remembered is how many finished acquisitions a session keeps, so that a call repeated after
// a lost answer finds its acquisition.
const remembered = 1024

// releaseTimeout bounds the release of a grant that no call waits for. After it the recipe
// continues in the background.
const releaseTimeout = 5 * time.Second

// A grant is a recipe's grant together with the function that releases it.
type grant struct {
	recipes.Grant
	release func(context.Context) error // Hold.Release, Leadership.Resign and the like

	endsWithHost bool // it needs the host's code: see the proto's Election
}

// An acquisition is the work for one request id, from the arrival of the call until the
// session forgets it. It runs once, however often it is called.
type acquisition struct {
	id      string
	resumed bool // the host had the grant from another plugin
	ctx     context.Context
	cancel  context.CancelFunc

	entersBarrier bool                // a double barrier
	early         func(proto.Message) // of the first call: see carry.Early

	done chan struct{} // closed when the fields below are set

	grant *grant
	place *recipes.Place
	err   error // may still change, under acquisitions.mu

	// Under acquisitions.mu:
	callers   int // calls that wait for its end
	abandoned bool
	watched   bool
	finished  bool
}

type acquisitions struct {
	ss    *session
	limit int

	mu       sync.Mutex
	closed   bool
	hostDead bool // the host has died
	all      map[string]*acquisition
	ended    []string                      // ids of finished acquisitions, the oldest first
	cancels  map[string]context.CancelFunc // cancel running calls that ask for no grant, by request id

	undos   map[string]func() // undo such calls after their success, by request id
	undoIDs []string          // the oldest first
}

func newAcquisitions(ss *session, limit int) *acquisitions {
	return &acquisitions{ss: ss, limit: limit, all: make(map[string]*acquisition), cancels: make(map[string]context.CancelFunc), undos: make(map[string]func())}
}

// knows reports whether a call with that id repeats an earlier one.
func (a *acquisitions) knows(id string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.all[id] != nil
}

// call makes the acquisition of a request by acquire, or joins the call that already does, and waits
// for its end.
// If ctx ends first and no other call waits for it, the contender leaves the wait queue.
// A grant that the host already has is resumed even if ctx ends, and the repeated call finds it.
func (a *acquisitions) call(ctx context.Context, t target, r *pb.AcquireRequest, acquire acquireFunc) (*acquisition, error) {
	c, first, err := a.find(ctx, r)
	if err != nil {
		return nil, err
	}
	if first {
		// It runs in the caller's goroutine: a separate one would have to wake the caller for the
		// answer. It continues after ctx's end while other calls wait for it.
		stop := context.AfterFunc(ctx, func() { _, _ = a.leave(ctx, c) })
		a.run(c, t, r, acquire)
		if !stop() { // leave was called
			return nil, ctx.Err()
		}
		return a.leave(ctx, c)
	}
	select {
	case <-c.done:
	case <-ctx.Done():
	case <-a.ss.ctx.Done():
		// The acquisition ends with the session. It soon returns an error that is more precise
		// than the session's.
		<-c.done
	}
	return a.leave(ctx, c)
}

// find returns the acquisition of a call, and counts the caller. first reports that the
// acquisition is new, and that the caller must run it.
func (a *acquisitions) find(ctx context.Context, r *pb.AcquireRequest) (c *acquisition, first bool, err error) {
	id := r.GetRequestId()
	if id == "" {
		return nil, false, fmt.Errorf("%w: request_id is empty", recipes.ErrInvalid)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	c, known := a.all[id]
	if !known {
		if a.closed {
			return nil, false, endReason(a.ss)
		}
		if n := len(a.all) - len(a.ended); n >= a.limit {
			return nil, false, errHoldsLimit(n)
		}
		c = &acquisition{
			id: id, resumed: r.GetResumed().GetToken() != 0, done: make(chan struct{}),
			entersBarrier: r.GetDoubleBarrier() != nil, early: carry.Early(ctx),
		}
		c.ctx, c.cancel = context.WithCancel(a.ss.ctx)
		a.all[id] = c
		a.ss.tasks.Add(1)
	}
	c.callers++
	return c, !known, nil
}

// leave ends the wait of one caller. A caller whose context has ended cannot read an answer,
// and gets none. If no other caller waits, the acquisition is dropped with its grant. A
// resumed grant is kept: the host relies on it, and releases it by Release or Abandon.
func (a *acquisitions) leave(ctx context.Context, c *acquisition) (*acquisition, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	c.callers--
	if ctx.Err() != nil {
		if c.callers == 0 && !c.resumed {
			a.drop(c)
		}
		return nil, ctx.Err()
	}
	return c, c.err
}

func (a *acquisitions) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
}

func (a *acquisitions) run(c *acquisition, t target, r *pb.AcquireRequest, acquire acquireFunc) {
	defer a.ss.tasks.Done()
	defer c.cancel()
	grant, err := c.contained(t, r, acquire)
	if a.ss.ctx.Err() != nil && errors.Is(err, context.Canceled) {
		err = endReason(a.ss)
	}

	a.mu.Lock()
	defer a.mu.Unlock()
	c.grant, c.err, c.early = grant, err, nil
	close(c.done)
	switch {
	case err != nil:
		c.grant = nil
		a.finish(c)
	case c.abandoned, a.hostDead && grant.endsWithHost:
		a.giveUp(c)
	}
}

// contained calls acquire. A panic becomes an error, because other calls may wait for the result.
func (c *acquisition) contained(t target, r *pb.AcquireRequest, acquire acquireFunc) (_ *grant, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = logPanic(p, t.log, "an acquisition")
		}
	}()
	return acquire(c.ctx, t, r, c.joined)
}

// hostDied gives up the grants that end with the host.
func (a *acquisitions) hostDied() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.hostDead = true
	for _, c := range a.all {
		select {
		case <-c.done:
			if c.grant != nil && c.grant.endsWithHost && !c.finished {
				a.giveUp(c)
			}
		default: // run finds that the host has died
		}
	}
}

// endReason returns the reason why a session has ended, even before Err returns it.
func endReason(ss *session) error {
	if err := ss.Err(); err != nil {
		return err
	}
	return context.Cause(ss.ctx)
}

// abandon is GrantService.Abandon: it cancels the request with that id. It remembers an
// unknown id as abandoned, because Abandon may overtake its call.
func (a *acquisitions) abandon(id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if undo, ok := a.undos[id]; ok { // before cancels: the call may not have returned yet
		delete(a.undos, id)
		a.background(undo)
		return
	}
	if end, ok := a.cancels[id]; ok {
		end()
		return
	}
	c, ok := a.all[id]
	if !ok {
		c = &acquisition{id: id, cancel: func() {}, done: make(chan struct{}), abandoned: true}
		c.err = fmt.Errorf("%w: request %s was abandoned before it arrived", context.Canceled, id)
		close(c.done)
		a.all[id] = c
		a.finish(c)
		return
	}
	a.drop(c)
}

// room returns how many of n grants the limit allows, at least one.
func (a *acquisitions) room(n int) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	used := len(a.all) - len(a.ended)
	if used >= a.limit {
		return 0, errHoldsLimit(used)
	}
	return min(n, a.limit-used), nil
}

func errHoldsLimit(n int) error {
	return fmt.Errorf("%w: the session holds or waits for %d grants", recipes.ErrLimit, n)
}

// add records a grant that was made by a call for several.
func (a *acquisitions) add(id string, g *grant) {
	a.mu.Lock()
	defer a.mu.Unlock()
	c := &acquisition{id: id, cancel: func() {}, done: make(chan struct{}), grant: g}
	close(c.done)
	a.all[id] = c
}

// abandonAll abandons the n grants of a call for several.
func (a *acquisitions) abandonAll(id string, n int) {
	for i := range n {
		a.abandon(wire.DeliveryID(id, i))
	}
}

// drop cancels an acquisition, and releases its grant if it has one. The caller holds mu.
func (a *acquisitions) drop(c *acquisition) {
	if c.abandoned {
		return
	}
	c.abandoned = true
	c.cancel()
	select {
	case <-c.done:
		if !c.finished { // the call holds a grant
			a.giveUp(c)
		}
	default: // run will find it abandoned
	}
}

// giveUp releases the grant of an abandoned acquisition. The caller holds mu.
func (a *acquisitions) giveUp(c *acquisition) {
	c.err = fmt.Errorf("%w: request %s was abandoned", context.Canceled, c.id)
	a.finish(c)
	a.background(func() {
		ctx, cancel := context.WithTimeout(a.ss.ctx, releaseTimeout)
		defer cancel()
		_ = c.grant.release(ctx) // on error it continues in the background, or the session has ended
	})
}

// finish marks an acquisition as finished. It no longer counts against the limit, and is
// remembered only for repeated calls. The caller holds mu.
func (a *acquisitions) finish(c *acquisition) {
	if c.finished {
		return
	}
	c.finished = true
	a.ended = append(a.ended, c.id)
	if len(a.ended) > remembered {
		delete(a.all, a.ended[0])
		a.ended = a.ended[1:]
	}
}

func (a *acquisitions) finished(c *acquisition) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.finish(c)
}

// retry makes the next call with the id run again. It is used after a failed resume, which
// has changed nothing: the host tries again, or joins with a new contender under the same id.
func (a *acquisitions) retry(c *acquisition) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.all[c.id] == c && c.callers == 0 && !c.abandoned {
		delete(a.all, c.id)
		a.ended = slices.DeleteFunc(a.ended, func(id string) bool { return id == c.id })
	}
}

// granted finds the acquisition of a grant, including finished ones.
func (a *acquisitions) granted(id string) (*acquisition, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if c := a.all[id]; c != nil && c.grant != nil {
		return c, nil
	}
	return nil, fmt.Errorf("%w: request %s holds nothing", recipes.ErrNotHeld, id)
}

// watch makes the session report the loss of a grant, once.
func (a *acquisitions) watch(c *acquisition) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if c.watched || a.closed {
		return
	}
	c.watched = true
	gone := c.grant.Done()
	a.ss.tasks.Go(func() {
		select {
		case <-gone:
		case <-a.ss.ctx.Done():
			return
		}
		err := c.grant.Err()
		a.finishIfGone(c, err)
		if errors.Is(err, recipes.ErrSessionLost) || errors.Is(err, recipes.ErrReleased) {
			return // the stream's last message reports a lost session; a release was requested by the host
		}
		a.ss.reportLoss(c, err)
	})
}

func (ss *session) reportLoss(c *acquisition, reason error) {
	gone := &pb.GrantLost{RequestId: c.id, Reason: wire.ToFailure(reason)}
	ss.out.put(&pb.OpenResponse{Message: &pb.OpenResponse_GrantLost{GrantLost: gone}})
}
