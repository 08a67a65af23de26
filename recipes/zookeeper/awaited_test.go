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

// happensAt has it happen just before that request of who waits, to which then the fault
// happens. It returns false where there is no such request, so that it happens when the
// waiter sends nothing more. Of writes only the first fault is tried: what becomes of
// those that get no answer is the fault sweep's.
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

func awaitedLines() (all []awaited) {
	for _, strategy := range recipes.Strategies() {
		lock := func(s recipes.Session, t *testing.T) recipes.Lock {
			return must[recipes.Lock](t)(s.Lock("/l", recipes.LockConfig{Strategy: strategy}))
		}
		acquire := func(s *awaiting) func(context.Context) error {
			l := lock(s.waits, s.T)
			return func(ctx context.Context) error { _, err := l.Acquire(ctx); return err }
		}
		all = append(all, awaited{fmt.Sprintf("the release of a lock, %s", strategy), func(s *awaiting) (wait, happen func(context.Context) error) {
			h := must[recipes.Hold](s.T)(lock(s.other, s.T).Acquire(s.ctx))
			return acquire(s), h.Release
		}}, awaited{fmt.Sprintf("the loss of a holder's znode, %s", strategy), func(s *awaiting) (wait, happen func(context.Context) error) {
			h := must[recipes.Hold](s.T)(lock(s.other, s.T).Acquire(s.ctx))
			return acquire(s), func(context.Context) error { return s.remove(h.Znode()) }
		}}, awaited{fmt.Sprintf("the end of a hold, %s", strategy), func(s *awaiting) (wait, happen func(context.Context) error) {
			h := must[recipes.Hold](s.T)(lock(s.waits, s.T).Acquire(s.ctx))
			return ended(h), func(context.Context) error { return s.remove(h.Znode()) }
		}})
		if strategy == recipes.Handoff {
			continue // what follows does as with predecessor then
		}
		all = append(all, awaited{fmt.Sprintf("a permit, %s", strategy), func(s *awaiting) (wait, happen func(context.Context) error) {
			at := func(s recipes.Session, t *testing.T) recipes.Semaphore {
				return must[recipes.Semaphore](t)(s.Semaphore("/l", recipes.SemaphoreConfig{Permits: 2, Strategy: strategy}))
			}
			first := must[recipes.Hold](s.T)(at(s.other, s.T).Acquire(s.ctx))
			must[recipes.Hold](s.T)(at(s.other, s.T).Acquire(s.ctx))
			mine := at(s.waits, s.T)
			return func(ctx context.Context) error { _, err := mine.Acquire(ctx); return err }, first.Release
		}})
		for _, read := range []bool{false, true} {
			shared := func(s recipes.Session, t *testing.T) recipes.SharedLock {
				return must[recipes.SharedLock](t)(s.SharedLock("/l", recipes.SharedLockConfig{Strategy: strategy, Revocable: true}))
			}
			acquire := func(s *awaiting) func(context.Context) error {
				l := shared(s.waits, s.T)
				return func(ctx context.Context) (err error) {
					if read {
						_, err = l.AcquireRead(ctx)
					} else {
						_, err = l.AcquireWrite(ctx)
					}
					return err
				}
			}
			all = append(all, awaited{fmt.Sprintf("the release of a writer, %s, read %v", strategy, read), func(s *awaiting) (wait, happen func(context.Context) error) {
				return acquire(s), must[recipes.SharedHold](s.T)(shared(s.other, s.T).AcquireWrite(s.ctx)).Release
			}})
			if read {
				all = append(all, awaited{fmt.Sprintf("a downgrade, %s", strategy), func(s *awaiting) (wait, happen func(context.Context) error) {
					return acquire(s), must[recipes.SharedHold](s.T)(shared(s.other, s.T).AcquireWrite(s.ctx)).Downgrade
				}}, awaited{fmt.Sprintf("a request to give way, %s", strategy), func(s *awaiting) (wait, happen func(context.Context) error) {
					h := must[recipes.SharedHold](s.T)(shared(s.waits, s.T).AcquireWrite(s.ctx))
					theirs := shared(s.other, s.T)
					return func(ctx context.Context) error {
						select {
						case <-h.Revoked():
							return nil
						case <-ctx.Done():
							return ctx.Err()
						}
					}, func(ctx context.Context) error { return theirs.Revoke(ctx, h.Znode()) }
				}})
			}
			priority := func(s recipes.Session, t *testing.T, at int) recipes.PriorityLock {
				return must[recipes.PriorityLock](t)(s.PriorityLock("/l", recipes.PriorityLockConfig{Strategy: strategy, Priority: at}))
			}
			claim := func(ctx context.Context, l recipes.PriorityLock) (recipes.PriorityHold, error) {
				if read {
					return l.AcquireRead(ctx)
				}
				return l.AcquireWrite(ctx)
			}
			all = append(all, awaited{fmt.Sprintf("the release of a priority lock, %s, read %v", strategy, read), func(s *awaiting) (wait, happen func(context.Context) error) {
				mine := priority(s.waits, s.T, 5)
				return func(ctx context.Context) error { _, err := claim(ctx, mine); return err },
					must[recipes.PriorityHold](s.T)(priority(s.other, s.T, 5).AcquireWrite(s.ctx)).Release
			}}, awaited{fmt.Sprintf("the release of a reader, %s, read %v", strategy, read), func(s *awaiting) (wait, happen func(context.Context) error) {
				mine := priority(s.waits, s.T, 5)
				return func(ctx context.Context) error { _, err := claim(ctx, mine); return err },
					must[recipes.PriorityHold](s.T)(priority(s.other, s.T, 5).AcquireRead(s.ctx)).Release
			}})
		}
	}
	for _, d := range []recipes.Dialect{recipes.Curator, recipes.Kazoo} {
		all = append(all, awaited{fmt.Sprintf("a lease, %s", d), func(s *awaiting) (wait, happen func(context.Context) error) {
			at := func(session recipes.Session) recipes.Semaphore {
				return must[recipes.Semaphore](s.T)(session.Semaphore("/l", recipes.SemaphoreConfig{Permits: 1, Dialect: d}))
			}
			h := must[recipes.Hold](s.T)(at(s.other).Acquire(s.ctx))
			mine := at(s.waits)
			return func(ctx context.Context) error { _, err := mine.Acquire(ctx); return err }, h.Release
		}})
	}
	return all
}

// ended waits until a grant stands no longer.
func ended(g recipes.Grant) func(context.Context) error {
	return func(ctx context.Context) error {
		select {
		case <-g.Done():
		case <-ctx.Done():
			return ctx.Err()
		}
		if err := g.Err(); !errors.Is(err, recipes.ErrRemoved) {
			return fmt.Errorf("it has ended for another reason: %w", err)
		}
		return nil
	}
}

func awaitedGroups() (all []awaited) {
	all = []awaited{
		{"a member of a group", func(s *awaiting) (wait, happen func(context.Context) error) {
			mine := must[recipes.Group](s.T)(s.waits.Group("/g", recipes.GroupConfig{}))
			theirs := must[recipes.Group](s.T)(s.other.Group("/g", recipes.GroupConfig{}))
			return until(mine.Watch, func(m []recipes.Member) bool { return len(m) == 1 }),
				func(ctx context.Context) error { _, err := theirs.Join(ctx, nil); return err }
		}},
		{"a member's data", func(s *awaiting) (wait, happen func(context.Context) error) {
			mine := must[recipes.Group](s.T)(s.waits.Group("/g", recipes.GroupConfig{}))
			m := must[recipes.Membership](s.T)(must[recipes.Group](s.T)(s.other.Group("/g", recipes.GroupConfig{})).Join(s.ctx, nil))
			return until(mine.Watch, func(m []recipes.Member) bool { return len(m) == 1 && string(m[0].Data) == "x" }),
				func(ctx context.Context) error { return m.Update(ctx, []byte("x")) }
		}},
		{"the end of a membership", func(s *awaiting) (wait, happen func(context.Context) error) {
			m := must[recipes.Membership](s.T)(must[recipes.Group](s.T)(s.waits.Group("/g", recipes.GroupConfig{})).Join(s.ctx, nil))
			return ended(m), func(context.Context) error { return s.remove(m.Znode()) }
		}},
		{"a name", func(s *awaiting) (wait, happen func(context.Context) error) {
			mine, theirs := must[recipes.Names](s.T)(s.waits.Names("/n")), must[recipes.Names](s.T)(s.other.Names("/n"))
			return until(func(ctx context.Context) (<-chan recipes.Record, error) { return mine.Watch(ctx, "name") },
					func(r recipes.Record) bool { return r.Znode != "" }),
				func(ctx context.Context) error { _, err := theirs.Register(ctx, "name", nil); return err }
		}},
	}
	for _, acknowledgedBefore := range []bool{false, true} {
		campaigning := func(s *awaiting) (mine, theirs recipes.Election) {
			mine = must[recipes.Election](s.T)(s.waits.Election("/e", recipes.ElectionConfig{}))
			theirs = must[recipes.Election](s.T)(s.other.Election("/e", recipes.ElectionConfig{}))
			if acknowledgedBefore { // so that the parents of candidates and acknowledgements exist
				leads := must[recipes.Leadership](s.T)(theirs.Campaign(s.ctx, nil))
				if err := errors.Join(leads.Acknowledge(s.ctx, nil), leads.Resign(s.ctx)); err != nil {
					s.Fatal(err)
				}
			}
			return mine, theirs
		}
		acknowledged := func(e recipes.Election) func(context.Context) error {
			return func(ctx context.Context) error { _, err := e.Acknowledged(ctx); return err }
		}
		all = append(all, awaited{fmt.Sprintf("a leader, the first %v", !acknowledgedBefore), func(s *awaiting) (wait, happen func(context.Context) error) {
			mine, theirs := campaigning(s)
			return until(mine.Observe, func(l recipes.Leader) bool { return !l.None() }),
				func(ctx context.Context) error { _, err := theirs.Campaign(ctx, nil); return err }
		}}, awaited{fmt.Sprintf("a leader that acknowledges, the first %v", !acknowledgedBefore), func(s *awaiting) (wait, happen func(context.Context) error) {
			mine, theirs := campaigning(s)
			return acknowledged(mine), func(ctx context.Context) error {
				leads, err := theirs.Campaign(ctx, nil)
				if err != nil {
					return err
				}
				return leads.Acknowledge(ctx, nil)
			}
		}}, awaited{fmt.Sprintf("an acknowledgement, the first %v", !acknowledgedBefore), func(s *awaiting) (wait, happen func(context.Context) error) {
			mine, theirs := campaigning(s)
			leads := must[recipes.Leadership](s.T)(theirs.Campaign(s.ctx, nil))
			return acknowledged(mine), func(ctx context.Context) error { return leads.Acknowledge(ctx, nil) }
		}}, awaited{fmt.Sprintf("another acknowledgement, the first %v", !acknowledgedBefore), func(s *awaiting) (wait, happen func(context.Context) error) {
			mine, theirs := campaigning(s)
			leads := must[recipes.Leadership](s.T)(theirs.Campaign(s.ctx, nil))
			if err := leads.Acknowledge(s.ctx, nil); err != nil {
				s.Fatal(err)
			}
			return until(mine.Observe, func(l recipes.Leader) bool { return string(l.Acknowledgement) == "x" }),
				func(ctx context.Context) error { return leads.Acknowledge(ctx, []byte("x")) }
		}}, awaited{fmt.Sprintf("the resignation of a leader, acknowledged %v", acknowledgedBefore), func(s *awaiting) (wait, happen func(context.Context) error) {
			mine, theirs := campaigning(s)
			leads := must[recipes.Leadership](s.T)(theirs.Campaign(s.ctx, nil))
			return until(mine.Observe, recipes.Leader.None), leads.Resign
		}})
	}
	for _, variant := range recipes.Variants() {
		sites := func(s *awaiting) (tx recipes.Transaction, mine, theirs recipes.Site) {
			tx = must[recipes.Transaction](s.T)(s.waits.Transaction("/tx", recipes.TransactionConfig{Variant: variant}))
			begins := must[recipes.Transaction](s.T)(s.other.Transaction("/tx", recipes.TransactionConfig{Variant: variant}))
			if err := begins.Begin(s.ctx, nil, "mine", "theirs"); err != nil {
				s.Fatal(err)
			}
			return tx, must[recipes.Site](s.T)(tx.Join(s.ctx, "mine")), must[recipes.Site](s.T)(begins.Join(s.ctx, "theirs"))
		}
		decided := func(wait func(context.Context) (recipes.Decision, error), commit bool) func(context.Context) error {
			return func(ctx context.Context) error {
				d, err := wait(ctx)
				if err == nil && d.Commit != commit {
					err = fmt.Errorf("decided %+v", d)
				}
				return err
			}
		}
		all = append(all, awaited{fmt.Sprintf("the last vote, %s", variant), func(s *awaiting) (wait, happen func(context.Context) error) {
			tx, mine, theirs := sites(s)
			if err := mine.Vote(s.ctx, recipes.VoteCommit); err != nil {
				s.Fatal(err)
			}
			return decided(tx.Coordinate, true), func(ctx context.Context) error { return theirs.Vote(ctx, recipes.VoteCommit) }
		}}, awaited{fmt.Sprintf("a vote to abort, %s", variant), func(s *awaiting) (wait, happen func(context.Context) error) {
			tx, _, theirs := sites(s)
			return decided(tx.Coordinate, false), func(ctx context.Context) error { return theirs.Vote(ctx, recipes.VoteAbort) }
		}}, awaited{fmt.Sprintf("a decision, %s", variant), func(s *awaiting) (wait, happen func(context.Context) error) {
			_, mine, _ := sites(s)
			aborts := must[recipes.Transaction](s.T)(s.other.Transaction("/tx", recipes.TransactionConfig{Variant: variant}))
			return decided(mine.Wait, false), func(ctx context.Context) error { _, err := aborts.Abort(ctx, ""); return err }
		}})
		if variant != recipes.AllWatch {
			all = append(all, awaited{fmt.Sprintf("the coordinator's place, %s", variant), func(s *awaiting) (wait, happen func(context.Context) error) {
				_, mine, theirs := sites(s)
				for _, site := range []recipes.Site{mine, theirs} {
					if err := site.Vote(s.ctx, recipes.VoteCommit); err != nil {
						s.Fatal(err)
					}
				}
				return decided(mine.Wait, true), func(context.Context) error { return s.remove("/tx/coordinator") }
			}})
		}
		if variant == recipes.OwnNodes {
			all = append(all, awaited{"a site that joins, and dies", func(s *awaiting) (wait, happen func(context.Context) error) {
				begins := must[recipes.Transaction](s.T)(s.other.Transaction("/tx", recipes.TransactionConfig{Variant: variant}))
				if err := begins.Begin(s.ctx, nil, "theirs"); err != nil {
					s.Fatal(err)
				}
				mine := must[recipes.Transaction](s.T)(s.waits.Transaction("/tx", recipes.TransactionConfig{Variant: variant}))
				return decided(mine.Coordinate, false), func(ctx context.Context) error {
					if _, err := begins.Join(ctx, "theirs"); err != nil {
						return err
					}
					return s.remove("/tx/s_theirs")
				}
			}})
		}
	}
	for _, d := range []recipes.Dialect{recipes.ZooKeeper, recipes.Curator, recipes.Kazoo} {
		at := func(s *awaiting) (mine, theirs recipes.DoubleBarrier) {
			cfg := recipes.DoubleBarrierConfig{Size: 2, Dialect: d}
			return must[recipes.DoubleBarrier](s.T)(s.waits.DoubleBarrier("/b", cfg)), must[recipes.DoubleBarrier](s.T)(s.other.DoubleBarrier("/b", cfg))
		}
		all = append(all, awaited{fmt.Sprintf("another member of a double barrier, %s", d), func(s *awaiting) (wait, happen func(context.Context) error) {
			mine, theirs := at(s)
			return func(ctx context.Context) error { _, err := mine.Enter(ctx, nil); return err }, func(context.Context) error {
				s.start(func(ctx context.Context) error { _, err := theirs.Enter(ctx, nil); return err })
				return nil
			}
		}}, awaited{fmt.Sprintf("another member that leaves, %s", d), func(s *awaiting) (wait, happen func(context.Context) error) {
			mine, theirs := at(s)
			entered := make(chan recipes.Passage, 1)
			s.start(func(ctx context.Context) error {
				p, err := theirs.Enter(ctx, nil)
				entered <- p
				return err
			})
			passage := must[recipes.Passage](s.T)(mine.Enter(s.ctx, nil))
			other := <-entered
			return passage.Leave, func(context.Context) error { s.start(other.Leave); return nil }
		}})
	}
	return all
}
