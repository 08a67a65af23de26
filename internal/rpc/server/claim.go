package server

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// remembered is how many finished claims a session keeps, so that a call that
// is repeated after its answer was lost finds it.
const remembered = 1024

// releaseTimeout bounds the release of a grant that nobody waits for. The
// recipes go on after it in the background.
const releaseTimeout = 5 * time.Second

// A held is a grant with its own word for giving back.
type held struct {
	recipes.Grant
	giveBack func(context.Context) error // Hold.Release or Leadership.Resign
}

// A claim is what one request id asked for, from the call's arrival until its
// end is no longer worth remembering. It runs once, however often it is called.
type claim struct {
	id     string
	cancel context.CancelFunc
	done   chan struct{} // closed when the fields below are set

	grant *held
	place *recipes.Place
	err   error // may still change, under claims.mu

	// Under claims.mu:
	callers   int // that wait, or have not been answered yet
	abandoned bool
	watched   bool
	finished  bool
}

// claims are the claims of one session.
type claims struct {
	ss    *session
	limit int

	mu     sync.Mutex
	closed bool
	all    map[string]*claim
	past   []string                      // ids of the finished, the oldest first
	waits  map[string]context.CancelFunc // of calls that are no claims, by request id

	undos   map[string]func() // of such calls that have succeeded, by request id
	undoIDs []string          // the oldest first
}

func newClaims(ss *session, limit int) *claims {
	return &claims{ss: ss, limit: limit, all: make(map[string]*claim), waits: make(map[string]context.CancelFunc), undos: make(map[string]func())}
}

// call runs the contest for id, or joins the call that already does, and waits
// for its end. When ctx ends first and nobody else waits for it, the contender
// leaves the line.
func (cs *claims) call(ctx context.Context, id string, announce bool, run contest) (*claim, error) {
	if id == "" {
		return nil, fmt.Errorf("%w: request_id is empty", recipes.ErrInvalid)
	}
	c, err := cs.enter(id, announce, contained(ctx, run))
	if err != nil {
		return nil, err
	}
	select {
	case <-c.done:
	case <-ctx.Done():
	case <-cs.ss.ctx.Done():
		// The claim's own context ends with the session's: its error is the
		// better one, and is not long in coming.
		<-c.done
	}
	return cs.leave(ctx, c)
}

func (cs *claims) enter(id string, announce bool, run contest) (*claim, error) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	c, ok := cs.all[id]
	if !ok {
		if cs.closed {
			return nil, lost(cs.ss)
		}
		if n := len(cs.all) - len(cs.past); n >= cs.limit {
			return nil, fmt.Errorf("%w: the session holds or waits for %d things", recipes.ErrLimit, n)
		}
		ctx, cancel := context.WithCancel(cs.ss.ctx)
		c = &claim{id: id, cancel: cancel, done: make(chan struct{})}
		cs.all[id] = c
		cs.ss.tasks.Go(func() { cs.run(ctx, c, announce, run) })
	}
	c.callers++
	return c, nil
}

// leave ends one caller's wait. A caller whose context has ended cannot have
// read an answer, so that none is given and no grant left behind.
func (cs *claims) leave(ctx context.Context, c *claim) (*claim, error) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	c.callers--
	if ctx.Err() != nil {
		if c.callers == 0 {
			cs.drop(c)
		}
		return nil, ctx.Err()
	}
	return c, c.err
}

// close refuses what would still have to be waited for.
func (cs *claims) close() {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	cs.closed = true
}

func (cs *claims) run(ctx context.Context, c *claim, announce bool, run contest) {
	defer c.cancel()
	var place *recipes.Place
	grant, err := run(ctx, cs.ss, func(p recipes.Place) {
		place = &p
		if announce {
			joined := &pb.Joined{RequestId: c.id, Place: wire.ToPlace(p)}
			cs.ss.out.put(&pb.OpenResponse{Message: &pb.OpenResponse_Joined{Joined: joined}})
		}
	})
	if err != nil && cs.ss.ctx.Err() != nil && errors.Is(err, context.Canceled) {
		err = lost(cs.ss)
	}

	cs.mu.Lock()
	defer cs.mu.Unlock()
	c.grant, c.place, c.err = grant, place, err
	close(c.done)
	switch {
	case err != nil:
		c.grant = nil
		cs.finish(c)
	case c.abandoned:
		cs.giveUp(c)
	}
}

// lost says why a session has ended, also in the moment before it knows itself.
func lost(ss *session) error {
	if err := ss.Err(); err != nil {
		return err
	}
	return context.Cause(ss.ctx)
}

// abandon is GrantService.Abandon: what id asked for is not wanted. An id that
// is not known yet is remembered as unwanted, because calls may overtake.
func (cs *claims) abandon(id string) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if end, ok := cs.waits[id]; ok {
		end()
		return
	}
	if undo, ok := cs.undos[id]; ok {
		delete(cs.undos, id)
		cs.background(undo)
		return
	}
	c, ok := cs.all[id]
	if !ok {
		c = &claim{id: id, cancel: func() {}, done: make(chan struct{}), abandoned: true}
		c.err = fmt.Errorf("%w: request %s was abandoned before it arrived", context.Canceled, id)
		close(c.done)
		cs.all[id] = c
		cs.finish(c)
		return
	}
	cs.drop(c)
}

// drop makes sure that nothing is left of a claim. It needs mu.
func (cs *claims) drop(c *claim) {
	if c.abandoned {
		return
	}
	c.abandoned = true
	c.cancel()
	select {
	case <-c.done:
		if c.grant != nil && !c.finished {
			cs.giveUp(c)
		}
	default: // run will see that it is abandoned
	}
}

// giveUp releases a grant that nobody wants. It needs mu.
func (cs *claims) giveUp(c *claim) {
	c.err = fmt.Errorf("%w: request %s was abandoned", context.Canceled, c.id)
	cs.finish(c)
	cs.background(func() {
		ctx, cancel := context.WithTimeout(cs.ss.ctx, releaseTimeout)
		defer cancel()
		_ = c.grant.giveBack(ctx) // goes on by itself, or has ended with the session
	})
}

// finish puts a claim among those that are only remembered. It needs mu.
func (cs *claims) finish(c *claim) {
	if c.finished {
		return
	}
	c.finished = true
	cs.past = append(cs.past, c.id)
	if len(cs.past) > remembered {
		delete(cs.all, cs.past[0])
		cs.past = cs.past[1:]
	}
}

func (cs *claims) finished(c *claim) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	cs.finish(c)
}

// granted finds a grant, finished ones included.
func (cs *claims) granted(id string) (*claim, error) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	c, ok := cs.all[id]
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

// watch arms the loss watch of a grant, once.
func (cs *claims) watch(c *claim) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if c.watched || cs.closed {
		return
	}
	c.watched = true
	gone := c.grant.Done()
	cs.ss.tasks.Go(func() {
		select {
		case <-gone:
		case <-cs.ss.ctx.Done():
			return
		}
		cs.finished(c)
		err := c.grant.Err()
		if errors.Is(err, recipes.ErrSessionLost) || errors.Is(err, recipes.ErrReleased) {
			return // the stream's last message says the one; the host did the other
		}
		cs.ss.tellLost(c, err)
	})
}

func (ss *session) tellLost(c *claim, reason error) {
	gone := &pb.GrantLost{RequestId: c.id, Reason: wire.ToFailure(reason)}
	ss.out.put(&pb.OpenResponse{Message: &pb.OpenResponse_GrantLost{GrantLost: gone}})
}
