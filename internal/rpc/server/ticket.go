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

// remembered is how many finished tickets a session keeps. A call that is repeated
// after its answer was lost finds its ticket.
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

// A ticket stands for what one request id asked for: from the call's arrival until
// the session forgets it. It runs once, however often it is called.
type ticket struct {
	id     string
	had    bool // by the host, from another plugin
	cancel context.CancelFunc
	done   chan struct{} // closed when the fields below are set

	grant *grant
	place *recipes.Place
	err   error // may still change, under tickets.mu

	// Under tickets.mu:
	callers   int // that wait, or have not been answered yet
	abandoned bool
	watched   bool
	finished  bool
}

// tickets are the tickets of one session.
type tickets struct {
	ss    *session
	limit int

	mu     sync.Mutex
	closed bool
	all    map[string]*ticket
	ended  []string                      // ids of the finished, the oldest first
	waits  map[string]context.CancelFunc // of calls that are no tickets, by request id

	undos   map[string]func() // of such calls that have succeeded, by request id
	undoIDs []string          // the oldest first
}

func newTickets(ss *session, limit int) *tickets {
	return &tickets{ss: ss, limit: limit, all: make(map[string]*ticket), waits: make(map[string]context.CancelFunc), undos: make(map[string]func())}
}

// knows reports whether a call of that id would repeat one.
func (ts *tickets) knows(id string) bool {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	return ts.all[id] != nil
}

// call runs the acquirer for id, or joins the call that already does, and waits
// for its end. When ctx ends first and nobody else waits for it, the contender
// leaves the line. had is for a grant that the host has already. That is resumed all the
// same, and the repeated call finds it.
func (ts *tickets) call(ctx context.Context, id string, had bool, announce func(recipes.Place), run acquirer) (*ticket, error) {
	if id == "" {
		return nil, fmt.Errorf("%w: request_id is empty", recipes.ErrInvalid)
	}
	c, first, err := ts.enter(id, had, announce, run)
	if err != nil {
		return nil, err
	}
	if first != nil {
		// In this goroutine: another one would have to wake it for the answer. The acquirer
		// goes on beyond the call for as long as others wait for it.
		stop := context.AfterFunc(ctx, func() { _, _ = ts.leave(ctx, c) })
		first()
		if !stop() { // it has left
			return nil, ctx.Err()
		}
		return ts.leave(ctx, c)
	}
	select {
	case <-c.done:
	case <-ctx.Done():
	case <-ts.ss.ctx.Done():
		// The ticket's own context ends with the session's. Its error says more, and
		// comes soon.
		<-c.done
	}
	return ts.leave(ctx, c)
}

// enter finds the ticket of a call, or makes one. The first call of a ticket has to
// run the acquirer.
func (ts *tickets) enter(id string, had bool, announce func(recipes.Place), run acquirer) (c *ticket, first func(), err error) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	c, ok := ts.all[id]
	if !ok {
		if ts.closed {
			return nil, nil, lost(ts.ss)
		}
		if n := len(ts.all) - len(ts.ended); n >= ts.limit {
			return nil, nil, fmt.Errorf("%w: the session holds or waits for %d things", recipes.ErrLimit, n)
		}
		ctx, cancel := context.WithCancel(ts.ss.ctx)
		c = &ticket{id: id, had: had, cancel: cancel, done: make(chan struct{})}
		ts.all[id] = c
		ts.ss.tasks.Add(1)
		first = func() {
			defer ts.ss.tasks.Done()
			ts.run(ctx, c, announce, run)
		}
	}
	c.callers++
	return c, first, nil
}

// leave ends one caller's wait. A caller whose context has ended cannot have read an
// answer. So it gets none, and no grant stays behind, but for one that its host had before:
// the host goes by that, and gives it back by Release or Abandon.
func (ts *tickets) leave(ctx context.Context, c *ticket) (*ticket, error) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	c.callers--
	if ctx.Err() != nil {
		if c.callers == 0 && !c.had {
			ts.drop(c)
		}
		return nil, ctx.Err()
	}
	return c, c.err
}

// close refuses new tickets.
func (ts *tickets) close() {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	ts.closed = true
}

func (ts *tickets) run(ctx context.Context, c *ticket, announce func(recipes.Place), run acquirer) {
	defer c.cancel()
	var place *recipes.Place
	grant, err := run(ctx, func(p recipes.Place) {
		place = &p
		if announce != nil {
			announce(p)
		}
	})
	ts.ss.out.withdraw(c.id)
	if ts.ss.ctx.Err() != nil && errors.Is(err, context.Canceled) {
		err = lost(ts.ss)
	}

	ts.mu.Lock()
	defer ts.mu.Unlock()
	c.grant, c.place, c.err = grant, place, err
	close(c.done)
	switch {
	case err != nil:
		c.grant = nil
		ts.finish(c)
	case c.abandoned:
		ts.giveUp(c)
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
func (ts *tickets) abandon(id string) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if end, ok := ts.waits[id]; ok {
		end()
		return
	}
	if undo, ok := ts.undos[id]; ok {
		delete(ts.undos, id)
		ts.background(undo)
		return
	}
	c, ok := ts.all[id]
	if !ok {
		c = &ticket{id: id, cancel: func() {}, done: make(chan struct{}), abandoned: true}
		c.err = fmt.Errorf("%w: request %s was abandoned before it arrived", context.Canceled, id)
		close(c.done)
		ts.all[id] = c
		ts.finish(c)
		return
	}
	ts.drop(c)
}

// drop leaves nothing of a ticket behind. It needs mu.
func (ts *tickets) drop(c *ticket) {
	if c.abandoned {
		return
	}
	c.abandoned = true
	c.cancel()
	select {
	case <-c.done:
		if !c.finished { // it was granted
			ts.giveUp(c)
		}
	default: // run will see that it is abandoned
	}
}

// giveUp releases a grant that is not wanted. It needs mu.
func (ts *tickets) giveUp(c *ticket) {
	c.err = fmt.Errorf("%w: request %s was abandoned", context.Canceled, c.id)
	ts.finish(c)
	ts.background(func() {
		ctx, cancel := context.WithTimeout(ts.ss.ctx, releaseTimeout)
		defer cancel()
		_ = c.grant.giveBack(ctx) // goes on by itself, or has ended with the session
	})
}

// finish notes that a ticket is only remembered from now on. It needs mu.
func (ts *tickets) finish(c *ticket) {
	if c.finished {
		return
	}
	c.finished = true
	ts.ended = append(ts.ended, c.id)
	if len(ts.ended) > remembered {
		delete(ts.all, ts.ended[0])
		ts.ended = ts.ended[1:]
	}
}

func (ts *tickets) finished(c *ticket) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	ts.finish(c)
}

// retry has a failed ticket's next call run again. It is for what was not resumed, which
// has changed nothing: the host tries again, or asks for another contender by the same id.
func (ts *tickets) retry(c *ticket) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if ts.all[c.id] == c && c.callers == 0 && !c.abandoned {
		delete(ts.all, c.id)
		ts.ended = slices.DeleteFunc(ts.ended, func(id string) bool { return id == c.id })
	}
}

// granted finds a grant, finished ones included.
func (ts *tickets) granted(id string) (*ticket, error) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	c, ok := ts.all[id]
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
func (ts *tickets) watch(c *ticket) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if c.watched || ts.closed {
		return
	}
	c.watched = true
	gone := c.grant.Done()
	ts.ss.tasks.Go(func() {
		select {
		case <-gone:
		case <-ts.ss.ctx.Done():
			return
		}
		err := c.grant.Err()
		ts.judge(c, err)
		if errors.Is(err, recipes.ErrSessionLost) || errors.Is(err, recipes.ErrReleased) {
			return // the stream's last message says the one; the host did the other
		}
		ts.ss.tellLost(c, err)
	})
}

func (ss *session) tellLost(c *ticket, reason error) {
	gone := &pb.GrantLost{RequestId: c.id, Reason: wire.ToFailure(reason)}
	ss.out.put(&pb.OpenResponse{Message: &pb.OpenResponse_GrantLost{GrantLost: gone}})
}
