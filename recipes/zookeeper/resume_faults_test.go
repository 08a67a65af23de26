package zookeeper_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/watchdog"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// Each fault is injected at each request of a resumed session. The victim is the process that
// resumes the grant or the waiter of another one.
func TestEveryFaultAtEveryRequestOfAResume(t *testing.T) {
	var cases atomic.Int64
	swept := func(t *testing.T, name string, run func(t *testing.T, f fault, at int64) int64) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sweep(t, faults, 4, &cases, run)
		})
	}
	t.Run("cases", func(t *testing.T) {
		// One way of each kind. The others differ only in names.
		few := []string{"lock by handoff", "shared lock for writing", "priority lock for writing", "name", "delivery"}
		for _, w := range ways(held) {
			if slices.Contains(few, w.Name) {
				swept(t, "held/"+w.Name, func(t *testing.T, f fault, at int64) int64 { return sweepResume(t, w, at, f) })
			}
		}
		for _, w := range ways(moved) {
			if slices.Contains(few, w.Name) {
				swept(t, "waiting/"+w.Name, func(t *testing.T, f fault, at int64) int64 { return sweepResumeWaiting(t, w, at, f) })
			}
		}
	})
	fmt.Printf("faults of a resumed session: %d cases\n", cases.Load())
}

// resumption is a session that another process has resumed.
type resumption struct {
	srv           *zkserver.Server
	ctx           context.Context
	victim, other recipes.Client
}

// before makes a session acquire what hold acquires, and a lock that is not resumed. Then it moves
// the session.
func (r *resumption) before(t *testing.T, hold func(recipes.Client)) {
	r.srv, r.ctx = zktest.Embedded(t), zktest.Bounded(t)
	r.other = zktest.Open(t, r.srv)
	first := zktest.Open(t, r.srv)
	hold(first)
	must.Get(must.Get(first.Lock(stagePath+"-dropped", recipes.LockConfig{}))(t).Acquire(r.ctx))(t)
	r.victim = zktest.Move(t, r.srv.Addr(), first)
}

// settle retries as a host does, while the server cannot be reached or throttles.
func settle(ctx context.Context, call func(context.Context) error) (err error) {
	for {
		err = call(ctx)
		if !errors.Is(err, recipes.ErrUnavailable) && !errors.Is(err, recipes.ErrThrottled) || ctx.Err() != nil || errors.Is(err, recipes.ErrNotHeld) || errors.Is(err, recipes.ErrSessionLost) {
			return err
		}
		time.Sleep(time.Millisecond)
	}
}

// giveBack gives a grant back, and retries.
func (r *resumption) giveBack(release func(context.Context) error) error {
	return settle(r.ctx, func(context.Context) error { return giveBack(release) })
}

// after checks that the session leaves nothing behind, and that the other session can get its
// grants.
func (r *resumption) after(t *testing.T, get func(context.Context) (recipes.Grant, error)) {
	t.Helper()
	if err := settle(r.ctx, r.victim.(zktest.Movable).DropRest); err != nil && !errors.Is(err, recipes.ErrSessionLost) {
		t.Errorf("DropRest: %v", err)
	}
	must.Get(must.Get(r.other.Lock(stagePath+"-dropped", recipes.LockConfig{}))(t).Acquire(r.ctx))(t)
	if _, err := get(r.ctx); err != nil {
		t.Errorf("another session: %v", err)
	}
	_ = r.victim.Close(r.ctx)
	for _, n := range r.srv.Tree() {
		if n.Stat.EphemeralOwner == r.victim.ID() {
			t.Errorf("left behind: %s", n.Path)
		}
	}
}

// sweepResume runs one case of a session with a grant.
func sweepResume(t *testing.T, w way, at int64, f fault) int64 {
	var r resumption
	var held recipes.Grant
	r.before(t, func(first recipes.Client) {
		held = must.Get(w.at(t, first, stagePath).Get(r.ctx))(t)
	})
	ctx, cancel := context.WithCancel(r.ctx)
	defer cancel()
	requests := f.strike(r.srv, r.victim, at, cancel, nil)
	resume := w.at(t, r.victim, stagePath).Resume
	var taken recipes.Grant
	call := func(ctx context.Context) (err error) {
		taken, err = resume(ctx, held.Znode(), held.Token())
		return err
	}
	err := settle(ctx, call)
	if errors.Is(err, context.Canceled) { // the call has resumed nothing, and can be repeated
		ctx = r.ctx
		err = settle(ctx, call)
	}
	if err == nil {
		if taken.Znode() != held.Znode() || taken.Token() != held.Token() {
			t.Errorf("resumed %s with token %d; want %s with %d", taken.Znode(), taken.Token(), held.Znode(), held.Token())
		}
		err = errors.Join(settle(ctx, r.victim.(zktest.Movable).DropRest), guardedError(taken.Write(ctx)), r.giveBack(func(ctx context.Context) error { return w.GiveBack(ctx, taken) }))
	}
	if !f.allows(err) {
		t.Errorf("the session ended with %v", err)
	}
	made := requests.Load()
	r.srv.SetFault(nil)
	r.after(t, w.at(t, r.other, stagePath).Get)
	return made
}

// sweepResumeWaiting runs one case of a session with a waiter.
func sweepResumeWaiting(t *testing.T, w way, at int64, f fault) int64 {
	var r resumption
	var place recipes.Place
	var holder recipes.Grant
	r.before(t, func(first recipes.Client) {
		holder = must.Get(w.enter(r.ctx, r.other, stagePath, nil))(t)
		joined := make(chan recipes.Place, 1)
		go func() { _, _ = w.enter(r.ctx, first, stagePath, func(p recipes.Place) { joined <- p }) }()
		place = <-joined
	})
	ctx, cancel := context.WithCancel(r.ctx)
	defer cancel()
	requests := f.strike(r.srv, r.victim, at, cancel, nil)
	granted := make(chan error, 1)
	go func() {
		g, err := w.resumeWaiting(ctx, r.victim, stagePath, place.Znode)
		if err == nil {
			if holder.Err() == nil {
				t.Error("granted beside the holder")
			}
			err = errors.Join(settle(ctx, r.victim.(zktest.Movable).DropRest), guardedError(g.Write(ctx)), r.giveBack(func(ctx context.Context) error { return w.GiveBack(ctx, g) }))
		}
		granted <- err
	}()
	must.Do(t, w.GiveBack(r.ctx, holder))
	if err := <-granted; !f.allows(err) {
		t.Errorf("the session ended with %v", err)
	}
	made := requests.Load()
	r.srv.SetFault(nil)
	r.after(t, func(ctx context.Context) (recipes.Grant, error) { return w.enter(ctx, r.other, stagePath, nil) })
	return made
}

func guardedError(err error) error {
	if errors.Is(err, recipes.ErrUnknownOutcome) {
		return nil
	}
	return err
}

// giveBack releases with a context of its own: a victim that was cancelled must not keep its
// grant.
func giveBack(release func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), watchdog.Patience)
	defer cancel()
	err := release(ctx)
	if errors.Is(err, recipes.ErrNotHeld) && !errors.Is(err, recipes.ErrSessionLost) {
		return fmt.Errorf("the session lives, but Release returned %w", err)
	}
	return err
}
