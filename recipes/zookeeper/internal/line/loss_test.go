package line_test

import (
	"context"
	"errors"
	"testing"
	"time"

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
	var n int
	srv.SetFault(func(r zkserver.Request) zkserver.Fault {
		if r.Op != zkserver.OpCreate {
			return zkserver.Fault{}
		}
		n++
		return zkserver.Fault{DropReply: n%2 == 0, CloseBefore: n%3 == 0}
	})
	for range 20 {
		interrupted, cancel := context.WithTimeout(ctx, 3*time.Millisecond)
		h, err := m.Acquire(interrupted)
		cancel()
		if err == nil {
			err = h.Release(ctx)
		}
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
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
