package zookeeper_test

import (
	"errors"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// docs/recipes.md gives these costs, and no other test counts them.
func TestCostsInTheDocs(t *testing.T) {
	srv, ctx := zktest.Embedded(t), zktest.Bounded(t)
	s, other := zktest.Open(t, srv), zktest.Open(t, srv)

	lock := must.Get(s.Lock("/lock", recipes.LockConfig{}))(t)
	hold := must.Get(lock.Acquire(ctx))(t)
	must.Do(t, hold.Write(ctx, recipes.Create("/data", nil)))
	write := func() {
		must.Report(t, hold.Write(ctx, recipes.Set("/data", nil, recipes.AnyVersion)))
	}
	write() // creates the containers
	must.Do(t, hold.Release(ctx))
	hold = must.Get(lock.Acquire(ctx))(t)

	shared := must.Get(s.SharedLock("/shared", recipes.SharedLockConfig{Revocable: true, Grace: time.Millisecond}))(t)
	must.Get(shared.AcquireWrite(ctx))(t)
	asker := must.Get(other.SharedLock("/shared", recipes.SharedLockConfig{}))(t)
	line := must.Get(asker.Contenders(ctx))(t)

	election := must.Get(s.Election("/election", recipes.ElectionConfig{}))(t)
	leadership := must.Get(election.Campaign(ctx, nil))(t)
	must.Do(t, errors.Join(leadership.Acknowledge(ctx, nil), leadership.Resign(ctx)))
	leadership = must.Get(election.Campaign(ctx, nil))(t)
	alone := must.Get(s.SharedLock("/alone", recipes.SharedLockConfig{}))(t)
	must.Do(t, must.Get(alone.AcquireRead(ctx))(t).Release(ctx))
	semaphore := must.Get(s.Semaphore("/semaphore", recipes.SemaphoreConfig{Permits: 3}))(t)
	must.Do(t, must.Get(semaphore.Acquire(ctx))(t).Release(ctx))
	var changes <-chan recipes.Leader
	priority := must.Get(s.PriorityLock("/priority", recipes.PriorityLockConfig{}))(t)
	must.Do(t, must.Get(priority.AcquireWrite(ctx))(t).Release(ctx))

	for _, tt := range []struct {
		name string
		do   func()
		want zktest.Cost
	}{
		{"the first guarded write", write, zktest.Cost{Writes: 2, Reads: 1}},
		{"the next guarded write", write, zktest.Cost{Writes: 1}},
		{"revoke", func() {
			must.Report(t, asker.Revoke(ctx, line[0].Znode))
		}, zktest.Cost{Writes: 1, Reads: 1}},
		{"revoke by force", func() {
			must.Report(t, asker.RevokeForced(ctx, line[0].Znode))
		}, zktest.Cost{Writes: 1, Reads: 3, Events: 1}},
		{"the first acknowledgement", func() {
			must.Report(t, leadership.Acknowledge(ctx, nil))
		}, zktest.Cost{Writes: 2, Reads: 1}},
		{"the first value of an observer", func() {
			changes = must.Get(must.Get(other.Election("/election", recipes.ElectionConfig{}))(t).Observe(ctx))(t)
			<-changes
		}, zktest.Cost{Reads: 3}},
		{"an acknowledgement that a session observes", func() {
			must.Report(t, leadership.Acknowledge(ctx, []byte("x")))
			<-changes
		}, zktest.Cost{Writes: 2, Reads: 3, Events: 1}},
		{"priority, write", func() {
			must.Report(t, must.Get(priority.AcquireWrite(ctx))(t).Release(ctx))
		}, zktest.Cost{Writes: 3, Reads: 4}},
		{"shared, write, downgrade", func() {
			h := must.Get(alone.AcquireWrite(ctx))(t)
			must.Report(t, errors.Join(h.Downgrade(ctx), h.Release(ctx)))
		}, zktest.Cost{Writes: 3, Reads: 3}},
		{"shared, read", func() {
			must.Report(t, must.Get(alone.AcquireRead(ctx))(t).Release(ctx))
		}, zktest.Cost{Writes: 2, Reads: 2}},
		{"semaphore", func() {
			must.Report(t, must.Get(semaphore.Acquire(ctx))(t).Release(ctx))
		}, zktest.Cost{Writes: 2, Reads: 3}},
		{"priority, read", func() {
			must.Report(t, must.Get(priority.AcquireRead(ctx))(t).Release(ctx))
		}, zktest.Cost{Writes: 3, Reads: 3}},
	} {
		if got := zktest.CostOf(srv, tt.do); got != tt.want {
			t.Errorf("%s: %v; want %v", tt.name, got, tt.want)
		}
	}
}

// TestASetCostsTheSameForAnyNumberOfContenders: a contender waits for the first lock of its set,
// and holds nothing else.
func TestASetCostsTheSameForAnyNumberOfContenders(t *testing.T) {
	for _, waiters := range []int{1, 10, 1000} {
		srv, ctx := zktest.Embedded(t), zktest.Bounded(t)
		s, joined, granted := zktest.Open(t, srv), make(chan recipes.Place), make(chan recipes.Holds)
		acquire := func() (recipes.Holds, error) {
			var locks []recipes.Lock
			for _, path := range []string{"/set/c", "/set/b", "/set/a"} {
				cfg := recipes.LockConfig{}
				if path == "/set/a" {
					cfg.Joined = func(p recipes.Place) { joined <- p }
				}
				locks = append(locks, must.Get(s.Lock(path, cfg))(t))
			}
			return recipes.AcquireAll(ctx, locks...)
		}
		for range waiters + 2 { // one by one, so that the order is known
			go func() {
				if set, err := acquire(); err == nil {
					granted <- set
				}
			}()
			<-joined
		}
		must.Do(t, (<-granted).Release(ctx)) // creates the containers
		set := <-granted
		// A lock costs a read and an event more if the next holder joins before the release. The
		// reads include inspections, which a slow machine has time for.
		got := zktest.CostOf(srv, func() {
			must.Do(t, set.Release(ctx))
			set = <-granted
		})
		if got.Writes != 5 || got.Reads > 20 || got.Events > 6 {
			t.Errorf("a turn of a set with %d waiters costs %v; want 5 writes, at most 20 reads and 6 events", waiters, got)
		}
	}
}

// TestATurnCostsTheSameForAnyNumberOfCallers: all callers ask at one time. Each of them costs the
// same, whether its turn is due or not.
func TestATurnCostsTheSameForAnyNumberOfCallers(t *testing.T) {
	for _, waiters := range []int{1, 10, 1000} {
		srv, ctx := zktest.Embedded(t), zktest.Bounded(t)
		s, joined, granted := zktest.Open(t, srv), make(chan struct{}), make(chan recipes.Hold)
		record := must.Get(s.Configuration("/turns"))(t)
		for range waiters + 1 {
			go func() {
				l := must.Get(s.Lock("/turns", recipes.LockConfig{Joined: func(recipes.Place) { joined <- struct{}{} }}))(t)
				if hold, err := l.Acquire(ctx); err == nil {
					granted <- hold
				}
			}()
			<-joined
		}
		hold := <-granted
		must.Do(t, must.Get(recipes.OncePer(ctx, hold, record, time.Hour))(t).Count(ctx))
		must.Do(t, hold.Release(ctx))
		// The reads include inspections, which a slow machine has time for.
		got := zktest.CostOf(srv, func() {
			for range waiters {
				hold = <-granted
				if _, err := recipes.OncePer(ctx, hold, record, time.Hour); !errors.As(err, new(*recipes.NotDueError)) {
					t.Errorf("error %v", err)
				}
				must.Do(t, hold.Release(ctx))
			}
		})
		t.Logf("%d callers that are too early: %v", waiters, got)
		if n := int64(waiters); got.Writes != 4*n || got.Reads > 3*n+20 || got.Events > 2*n {
			t.Errorf("%d callers that are too early cost %v; want 4 writes, and at most 3 reads and 2 events, for each", n, got)
		}
	}
}
