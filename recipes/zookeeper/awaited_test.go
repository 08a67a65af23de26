package zookeeper_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// Whoever waits for something looks, arms a watch, and waits. What it waits for may
// happen just before any of its requests, and before or after its connection is lost
// with that request. It must notice, whenever that is: a watch that is armed too late, or
// on a connection that is lost, tells nothing.

// awaited is something that is waited for.
type awaited struct {
	name string
	// prepare returns what waits, in one session, and what it waits for, in another.
	prepare func(s *awaiting) (wait, happen func(context.Context) error)
}

// awaiting is the stage of an awaited.
type awaiting struct {
	*testing.T
	ctx          context.Context
	srv          *zkserver.Server
	waits, other recipes.Session
	all          sync.WaitGroup
}

// start runs something that ends after what is waited for has happened.
func (s *awaiting) start(f func(context.Context) error) {
	s.all.Go(func() {
		if err := f(s.ctx); err != nil {
			s.Errorf("in the other session: %v", err)
		}
	})
}

// remove deletes a znode, as another program would.
func (s *awaiting) remove(path string) error {
	b, err := s.other.Barrier(path)
	if err != nil {
		return err
	}
	return b.Remove(s.ctx)
}

func TestWhatIsWaitedForIsNoticedWheneverItHappens(t *testing.T) {
	cases := append(append(awaitedValues(), awaitedQueues()...), append(awaitedLines(), awaitedGroups()...)...)
	for _, a := range cases {
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			for what, fault := range map[string]zkserver.Fault{
				"alone":                        {},
				"then the connection is lost":  {CloseBefore: true},
				"then the reply to it is lost": {DropReply: true},
			} {
				for at := 1; ; at++ {
					met := a.happensAt(t, at, fault)
					if t.Failed() {
						t.Fatalf("request %d, %s", at, what)
					}
					if !met {
						break
					}
				}
			}
		})
	}
}

// happensAt has it happen just before that request of the waiter, to which then the fault
// happens. It returns false where there is no such request, so that it happens when the
// waiter sends nothing more. Of writes only the first fault is tried. The fault sweep has
// writes that get no answer.
func (a awaited) happensAt(t *testing.T, at int, fault zkserver.Fault) (met bool) {
	synctest.Test(t, func(t *testing.T) {
		srv := zkserver.New(zkserver.Config{})
		t.Cleanup(func() { srv.Close() })
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour) // virtual
		t.Cleanup(cancel)
		s := &awaiting{T: t, ctx: ctx, srv: srv, waits: openVirtual(t, srv), other: openVirtual(t, srv)}
		wait, happen := a.prepare(s)
		var mu sync.Mutex
		n := 0
		srv.SetFault(func(r zkserver.Request) zkserver.Fault {
			if r.SessionID != s.waits.ID() || r.Op == zkserver.OpSync {
				return zkserver.Fault{}
			}
			mu.Lock()
			n++
			now := n == at
			met = met || now
			mu.Unlock()
			if !now {
				return zkserver.Fault{}
			}
			if err := happen(ctx); err != nil {
				t.Errorf("what is waited for does not happen: %v", err)
			}
			switch r.Op {
			case zkserver.OpExists, zkserver.OpGetData, zkserver.OpGetChildren, zkserver.OpGetChildren2:
				return fault
			}
			return zkserver.Fault{}
		})
		done := make(chan error, 1)
		go func() { done <- wait(ctx) }()
		synctest.Wait()
		mu.Lock()
		already := met
		mu.Unlock()
		if !already {
			srv.SetFault(nil)
			if fault.CloseBefore { // the waiter has no watch on the next connection before it looks
				srv.CloseConnection(s.waits.ID())
			}
			if err := happen(ctx); err != nil {
				t.Errorf("what is waited for does not happen: %v", err)
			}
		}
		if err := <-done; err != nil {
			t.Errorf("whoever waits is told %v", err)
		}
		srv.SetFault(nil)
		met = already
		s.all.Wait()
	})
	return met
}

// until reads a channel until a value is the one that is waited for.
func until[T any](watch func(context.Context) (<-chan T, error), is func(T) bool) func(context.Context) error {
	return func(ctx context.Context) error {
		ctx, cancel := context.WithCancel(ctx)
		values, err := watch(ctx)
		if err != nil {
			cancel()
			return err
		}
		defer func() {
			cancel()
			for range values {
			}
		}()
		for {
			select {
			case v, open := <-values:
				if !open {
					return errors.New("the watch has ended")
				}
				if is(v) {
					return nil
				}
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
}

func awaitedValues() []awaited {
	key := func(name string, prepare func(*awaiting, recipes.Configuration)) awaited {
		return awaited{name, func(s *awaiting) (wait, happen func(context.Context) error) {
			mine := must[recipes.Configuration](s.T)(s.waits.Configuration("/c"))
			theirs := must[recipes.Configuration](s.T)(s.other.Configuration("/c"))
			prepare(s, theirs)
			wait = until(func(ctx context.Context) (<-chan recipes.Entry, error) { return mine.Watch(ctx, "key") },
				func(e recipes.Entry) bool { return string(e.Value) == "x" })
			return wait, func(ctx context.Context) error {
				_, err := theirs.Set(ctx, "key", []byte("x"), recipes.AnyRevision)
				return err
			}
		}}
	}
	return []awaited{
		key("a key of a configuration", func(*awaiting, recipes.Configuration) {}),
		key("another value of a key", func(s *awaiting, c recipes.Configuration) {
			must[recipes.Revision](s.T)(c.Set(s.ctx, "key", []byte("old"), recipes.AnyRevision))
		}),
		{"a configuration", func(s *awaiting) (wait, happen func(context.Context) error) {
			mine := must[recipes.Configuration](s.T)(s.waits.Configuration("/c"))
			theirs := must[recipes.Configuration](s.T)(s.other.Configuration("/c"))
			wait = until(mine.WatchTree, func(all []recipes.Entry) bool { return len(all) == 3 })
			return wait, func(ctx context.Context) error {
				_, err := theirs.Set(ctx, "a/b", []byte("x"), recipes.AnyRevision)
				return err
			}
		}},
		{"a latch", func(s *awaiting) (wait, happen func(context.Context) error) {
			theirs := latchAt(s.T, s.other, "/latch", 1)
			return latchAt(s.T, s.waits, "/latch", 1).Wait, func(ctx context.Context) error { _, err := theirs.CountDown(ctx); return err }
		}},
		{"the removal of a barrier", func(s *awaiting) (wait, happen func(context.Context) error) {
			theirs := barrierAt(s.T, s.other, "/barrier")
			if err := theirs.Set(s.ctx, nil); err != nil {
				s.Fatal(err)
			}
			return barrierAt(s.T, s.waits, "/barrier").Wait, theirs.Remove
		}},
	}
}

func awaitedQueues() (all []awaited) {
	take := func(q recipes.Queue) func(context.Context) error {
		return func(ctx context.Context) error { _, err := q.Take(ctx); return err }
	}
	put := func(q recipes.Queue) func(context.Context) error {
		return func(ctx context.Context) error { _, err := q.Put(ctx, nil); return err }
	}
	for _, d := range []recipes.Dialect{recipes.ZooKeeper, recipes.Curator, recipes.Kazoo} {
		all = append(all, awaited{fmt.Sprintf("the first element of a queue, %s", d), func(s *awaiting) (wait, happen func(context.Context) error) {
			cfg := recipes.QueueConfig{Dialect: d}
			return take(queueOf(s.T, s.waits, "/q", cfg)), put(queueOf(s.T, s.other, "/q", cfg))
		}}, awaited{fmt.Sprintf("another element of a queue, %s", d), func(s *awaiting) (wait, happen func(context.Context) error) {
			cfg := recipes.QueueConfig{Dialect: d}
			theirs := queueOf(s.T, s.other, "/q", cfg)
			must[recipes.ElementID](s.T)(theirs.Put(s.ctx, nil))
			must[recipes.Element](s.T)(theirs.Take(s.ctx))
			return take(queueOf(s.T, s.waits, "/q", cfg)), put(theirs)
		}})
	}
	priority := func(s recipes.Session, t *testing.T) recipes.PriorityQueue {
		return must[recipes.PriorityQueue](t)(s.PriorityQueue("/q", recipes.QueueConfig{}))
	}
	return append(all, awaited{"room in a queue", func(s *awaiting) (wait, happen func(context.Context) error) {
		cfg := recipes.QueueConfig{Capacity: 2}
		theirs := queueOf(s.T, s.other, "/q", cfg)
		must[[]recipes.ElementID](s.T)(theirs.PutMany(s.ctx, nil, nil))
		return put(queueOf(s.T, s.waits, "/q", cfg)), take(theirs)
	}}, awaited{"an element that is returned", func(s *awaiting) (wait, happen func(context.Context) error) {
		theirs := queueOf(s.T, s.other, "/q", recipes.QueueConfig{})
		must[recipes.ElementID](s.T)(theirs.Put(s.ctx, nil))
		d := must[recipes.Delivery](s.T)(theirs.Receive(s.ctx))
		mine := queueOf(s.T, s.waits, "/q", recipes.QueueConfig{})
		return func(ctx context.Context) error { _, err := mine.Receive(ctx); return err }, d.Return
	}}, awaited{"an element of a priority queue", func(s *awaiting) (wait, happen func(context.Context) error) {
		mine, theirs := priority(s.waits, s.T), priority(s.other, s.T)
		return func(ctx context.Context) error { _, err := mine.Take(ctx); return err },
			func(ctx context.Context) error { _, err := theirs.Put(ctx, 7, nil); return err }
	}})
}
