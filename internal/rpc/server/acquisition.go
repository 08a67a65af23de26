package server

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// remembered is how many finished acquisitions a session keeps. A call that is repeated
// after its answer was lost finds its acquisition.
const remembered = 1024

// releaseTimeout bounds the release of a grant that nobody waits for. The
// recipes go on after it in the background.
const releaseTimeout = 5 * time.Second

// A grant is what a recipe has granted, and how it is given back.
type grant struct {
	recipes.Grant
	giveBack func(context.Context) error // Hold.Release, Leadership.Resign and the like
}

// An acquirer waits for a grant. If the recipe has a line, it calls joined once.
type acquirer func(ctx context.Context, joined func(recipes.Place)) (*grant, error)

// An acquisition is what one request id asked for: from the call's arrival until
// the session forgets it. It runs once, however often it is called.
type acquisition struct {
	id     string
	had    bool // by the host, from another plugin
	cancel context.CancelFunc
	done   chan struct{} // closed when the fields below are set

	grant *grant
	place *recipes.Place
	err   error // may still change, under acquisitions.mu

	// Under acquisitions.mu:
	callers   int // that wait, or have not been answered yet
	abandoned bool
	watched   bool
	finished  bool
}

// acquisitions are those of one session.
type acquisitions struct {
	ss    *session
	limit int

	mu     sync.Mutex
	closed bool
	all    map[string]*acquisition
	ended  []string                      // ids of the finished, the oldest first
	waits  map[string]context.CancelFunc // of calls that are no acquisitions, by request id

	undos   map[string]func() // of such calls that have succeeded, by request id
	undoIDs []string          // the oldest first
}

func newAcquisitions(ss *session, limit int) *acquisitions {
	return &acquisitions{ss: ss, limit: limit, all: make(map[string]*acquisition), waits: make(map[string]context.CancelFunc), undos: make(map[string]func())}
}

// knows reports whether a call of that id would repeat one.
func (a *acquisitions) knows(id string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.all[id] != nil
}

// call runs the acquirer for id, or joins the call that already does, and waits
// for its end. When ctx ends first and nobody else waits for it, the contender
// leaves the line. had is for a grant that the host has already. That is resumed all the
// same, and the repeated call finds it.
func (a *acquisitions) call(ctx context.Context, id string, had bool, announce func(recipes.Place), run acquirer) (*acquisition, error) {
	if id == "" {
		return nil, fmt.Errorf("%w: request_id is empty", recipes.ErrInvalid)
	}
	c, first, err := a.enter(id, had, announce, run)
	if err != nil {
		return nil, err
	}
	if first != nil {
		// In this goroutine: another one would have to wake it for the answer. The acquirer
		// goes on beyond the call for as long as others wait for it.
		stop := context.AfterFunc(ctx, func() { _, _ = a.leave(ctx, c) })
		first()
		if !stop() { // it has left
			return nil, ctx.Err()
		}
		return a.leave(ctx, c)
	}
	select {
	case <-c.done:
	case <-ctx.Done():
	case <-a.ss.ctx.Done():
		// The acquisition's own context ends with the session's. Its error says more, and
		// comes soon.
		<-c.done
	}
	return a.leave(ctx, c)
}

// enter finds the acquisition of a call, or makes one. The first call of an acquisition has to
// run the acquirer.
func (a *acquisitions) enter(id string, had bool, announce func(recipes.Place), run acquirer) (c *acquisition, first func(), err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	c, ok := a.all[id]
	if !ok {
		if a.closed {
			return nil, nil, lost(a.ss)
		}
		if n := len(a.all) - len(a.ended); n >= a.limit {
			return nil, nil, fmt.Errorf("%w: the session holds or waits for %d things", recipes.ErrLimit, n)
		}
		ctx, cancel := context.WithCancel(a.ss.ctx)
		c = &acquisition{id: id, had: had, cancel: cancel, done: make(chan struct{})}
		a.all[id] = c
		a.ss.tasks.Add(1)
		first = func() {
			defer a.ss.tasks.Done()
			a.run(ctx, c, announce, run)
		}
	}
	c.callers++
	return c, first, nil
}

// leave ends one caller's wait. A caller whose context has ended cannot have read an
// answer. So it gets none, and no grant stays behind, but for one that its host had before:
// the host goes by that, and gives it back by Release or Abandon.
func (a *acquisitions) leave(ctx context.Context, c *acquisition) (*acquisition, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	c.callers--
	if ctx.Err() != nil {
		if c.callers == 0 && !c.had {
			a.drop(c)
		}
		return nil, ctx.Err()
	}
	return c, c.err
}

// close refuses new acquisitions.
func (a *acquisitions) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
}

func (a *acquisitions) run(ctx context.Context, c *acquisition, announce func(recipes.Place), run acquirer) {
	defer c.cancel()
	var place *recipes.Place
	grant, err := run(ctx, func(p recipes.Place) {
		place = &p
		if announce != nil {
			announce(p)
		}
	})
	a.ss.out.withdraw(c.id)
	if a.ss.ctx.Err() != nil && errors.Is(err, context.Canceled) {
		err = lost(a.ss)
	}

	a.mu.Lock()
	defer a.mu.Unlock()
	c.grant, c.place, c.err = grant, place, err
	close(c.done)
	switch {
	case err != nil:
		c.grant = nil
		a.finish(c)
	case c.abandoned:
		a.giveUp(c)
	}
}

// lost says why a session has ended, also in the moment before the session says it.
func lost(ss *session) error {
	if err := ss.Err(); err != nil {
		return err
	}
	return context.Cause(ss.ctx)
}

// abandon is GrantService.Abandon: what id asked for is not wanted. An id that is
// not known yet is remembered as unwanted, because Abandon may overtake its call.
func (a *acquisitions) abandon(id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if end, ok := a.waits[id]; ok {
		end()
		return
	}
	if undo, ok := a.undos[id]; ok {
		delete(a.undos, id)
		a.background(undo)
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

// drop leaves nothing of an acquisition behind. It needs mu.
func (a *acquisitions) drop(c *acquisition) {
	if c.abandoned {
		return
	}
	c.abandoned = true
	c.cancel()
	select {
	case <-c.done:
		if !c.finished { // it was granted
			a.giveUp(c)
		}
	default: // run will see that it is abandoned
	}
}

// giveUp releases a grant that is not wanted. It needs mu.
func (a *acquisitions) giveUp(c *acquisition) {
	c.err = fmt.Errorf("%w: request %s was abandoned", context.Canceled, c.id)
	a.finish(c)
	a.background(func() {
		ctx, cancel := context.WithTimeout(a.ss.ctx, releaseTimeout)
		defer cancel()
		_ = c.grant.giveBack(ctx) // goes on by itself, or has ended with the session
	})
}

// finish notes that an acquisition is only remembered from now on. It needs mu.
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

// retry has a failed acquisition's next call run again. It is for what was not resumed, which
// has changed nothing: the host tries again, or asks for another contender by the same id.
func (a *acquisitions) retry(c *acquisition) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.all[c.id] == c && c.callers == 0 && !c.abandoned {
		delete(a.all, c.id)
		a.ended = slices.DeleteFunc(a.ended, func(id string) bool { return id == c.id })
	}
}

// granted finds a grant, finished ones included.
func (a *acquisitions) granted(id string) (*acquisition, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	c, ok := a.all[id]
	if ok {
		select {
		case <-c.done:
			if c.grant != nil {
				return c, nil
			}
		default:
		}
	}
	return nil, fmt.Errorf("%w: request %s holds nothing", recipes.ErrNotHeld, id)
}

// watch has the loss of a grant told, once.
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
		a.judge(c, err)
		if errors.Is(err, recipes.ErrSessionLost) || errors.Is(err, recipes.ErrReleased) {
			return // the stream's last message says the one; the host did the other
		}
		a.ss.tellLost(c, err)
	})
}

func (ss *session) tellLost(c *acquisition, reason error) {
	gone := &pb.GrantLost{RequestId: c.id, Reason: wire.ToFailure(reason)}
	ss.out.put(&pb.OpenResponse{Message: &pb.OpenResponse_GrantLost{GrantLost: gone}})
}
