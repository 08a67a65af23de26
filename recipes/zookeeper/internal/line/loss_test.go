package line_test

import (
	"context"
	"errors"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// CURATOR-211, 307: a contender whose znode was missing ran into an index out of range;
// etcd#6408: a loop spun on a deleted key.
func TestAContenderWhoseZnodeIsDeletedFails(t *testing.T) {
	srv := zktest.Embedded(t)
	s, ctx := zktest.Open(t, srv), zktest.Bounded(t)
	l := must.Get(s.Lock("/removed", recipes.LockConfig{}))(t)
	hold := must.Get(l.Acquire(ctx))(t)
	place := make(chan recipes.Place, 1)
	waiter := must.Get(s.Lock("/removed", recipes.LockConfig{Joined: func(p recipes.Place) { place <- p }}))(t)
	got := make(chan error, 1)
	go func() {
		_, err := waiter.Acquire(ctx)
		got <- err
	}()
	p := <-place
	if p.Position != 1 {
		t.Errorf("position %d", p.Position)
	}
	must.Do(t, hold.Write(ctx, recipes.Delete(p.Znode, recipes.AnyVersion)))
	must.Do(t, hold.Release(ctx))
	if err := <-got; !errors.Is(err, recipes.ErrRemoved) {
		t.Fatalf("got %v", err)
	}
}

// After a loss, other libraries reported "already held" forever (consul#4902; go-zookeeper returns
// ErrDeadlock).
func TestALockIsUsableAfterALoss(t *testing.T) {
	srv := zktest.Embedded(t)
	s, ctx := zktest.Open(t, srv), zktest.Bounded(t)
	l := must.Get(s.Lock("/again", recipes.LockConfig{}))(t)
	hold := must.Get(l.Acquire(ctx))(t)
	lost := hold.Done()
	must.Do(t, hold.Write(ctx, recipes.Delete(hold.Znode(), recipes.AnyVersion)))
	select {
	case <-lost:
	case <-ctx.Done():
		t.Fatal("Done has not closed after the loss")
	}
	if err := hold.Err(); !errors.Is(err, recipes.ErrRemoved) {
		t.Errorf("lost with %v", err)
	}
	if err := hold.Release(ctx); !errors.Is(err, recipes.ErrNotHeld) {
		t.Errorf("release: %v", err)
	}
	again := must.Get(l.Acquire(ctx))(t)
	if again.Token() <= hold.Token() {
		t.Errorf("token %d after %d", again.Token(), hold.Token())
	}
	must.Report(t, again.Release(ctx))
}

// CURATOR-315, 335, 462: reconnects and interrupts orphaned semaphore leases, until no
// contender was granted any more.
func TestReconnectsAndInterruptsOrphanNoLease(t *testing.T) {
	srv := zktest.Embedded(t)
	s, ctx := zktest.Open(t, srv), zktest.Bounded(t)
	m := must.Get(s.Semaphore("/leases", recipes.SemaphoreConfig{Permits: 2}))(t)
	for n := range 20 {
		interrupted, cancel := context.WithCancel(ctx)
		srv.SetFault(func(r zkserver.Request) zkserver.Fault {
			if r.Op != zkserver.OpCreate {
				return zkserver.Fault{}
			}
			cancel()
			return zkserver.Fault{DropReply: n%2 == 0, CloseBefore: n%3 == 0}
		})
		h, err := m.Acquire(interrupted)
		if err == nil {
			err = h.Release(ctx)
		}
		if interrupted.Err() == nil || err != nil && !errors.Is(err, context.Canceled) {
			t.Fatalf("interrupted: %v; %v", interrupted.Err(), err)
		}
	}
	srv.SetFault(nil)
	for range 2 {
		must.Get(m.Acquire(ctx))(t)
	}
	if in := must.Get(m.Contenders(ctx))(t); len(in) != 2 {
		t.Errorf("the wait queue has %+v; want the two holders", in)
	}
}

// etcd#22082: an unlock that was sent again deleted a newer lock of the same
// session.
func TestAReleaseSentAgainDoesNotHitTheNextHold(t *testing.T) {
	for _, strategy := range recipes.Strategies() {
		srv := zktest.Embedded(t)
		s, ctx := zktest.Open(t, srv), zktest.Bounded(t)
		l := must.Get(s.Lock("/twice", recipes.LockConfig{Strategy: strategy}))(t)
		first := must.Get(l.Acquire(ctx))(t)
		deletes := 0
		srv.SetFault(func(r zkserver.Request) zkserver.Fault {
			if r.Op == zkserver.OpDelete || r.Op == zkserver.OpMulti {
				if deletes++; deletes == 1 {
					return zkserver.Fault{DropReply: true}
				}
			}
			return zkserver.Fault{}
		})
		released := make(chan error, 1)
		go func() { released <- first.Release(ctx) }()
		<-first.Done()
		second := must.Get(l.Acquire(ctx))(t)
		must.Do(t, <-released)
		if deletes < 1 || deletes < 2 && strategy != recipes.Handoff { // with Handoff it reads before it sends again
			t.Fatalf("%d deletes: the case was not met", deletes)
		}
		if err := second.Write(ctx); err != nil {
			t.Errorf("the second hold: %v", err)
		}
		must.Report(t, second.Release(ctx))
	}
}

// etcd#10111: if a cancellation raced with the grant, the call returned success after it had
// unlocked. If Acquire succeeds, the hold must exist.
func TestACancellationThatRacesWithTheGrant(t *testing.T) {
	srv := zktest.Embedded(t)
	s, other, ctx := zktest.Open(t, srv), zktest.Open(t, srv), zktest.Bounded(t)
	for range 50 {
		l := must.Get(other.Lock("/race", recipes.LockConfig{}))(t)
		first := must.Get(l.Acquire(ctx))(t)
		cancelled, cancel := context.WithCancel(ctx)
		joined := make(chan struct{})
		waiter := must.Get(s.Lock("/race", recipes.LockConfig{Joined: func(recipes.Place) { close(joined) }}))(t)
		type result struct {
			hold recipes.Hold
			err  error
		}
		got := make(chan result, 1)
		go func() {
			hold, err := waiter.Acquire(cancelled)
			got <- result{hold, err}
		}()
		<-joined
		go cancel()
		must.Do(t, first.Release(ctx))
		r := <-got
		switch {
		case r.err == nil:
			if err := r.hold.Write(ctx); err != nil {
				t.Fatalf("acquired, and yet: %v", err)
			}
			must.Do(t, r.hold.Release(ctx))
		case !errors.Is(r.err, context.Canceled):
			t.Fatal(r.err)
		}
	}
}
