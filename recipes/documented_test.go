package recipes_test

import (
	"context"
	"time"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// documented has a row for each row of the tables in docs/recipes.md.
var documented = map[string]struct {
	// use creates each znode that one session can create with the recipe. nil: the table of
	// znodes has no such row.
	use func(trial)
	// operate does each operation in the table of costs, after the parents and receipts of
	// the recipe exist. Operations in parentheses are not in the table, or only in its prose. A
	// cost that follows them belongs to them. nil: the table has no such row, or only prose.
	operate func(trial)
}{
	"Lock": {
		use: func(t trial) {
			for _, strategy := range []recipes.Strategy{recipes.Handoff, recipes.Predecessor} {
				lock, err := t.s.Lock(t.path, recipes.LockConfig{Strategy: strategy})
				t.must(err)
				waits := make(chan struct{})
				if strategy == recipes.Predecessor { // this contender waits for the one that uses Handoff
					lock, err = t.s.Lock(t.path, recipes.LockConfig{Strategy: strategy, Joined: func(recipes.Place) { close(waits) }})
					t.must(err)
					go lock.Acquire(t.ctx)
					<-waits
					continue
				}
				hold, err := lock.Acquire(t.ctx)
				t.must(err)
				t.must(hold.Write(t.ctx))
			}
		},
		operate: func(t trial) {
			lock, err := t.s.Lock(t.path, recipes.LockConfig{})
			t.must(err)
			pair(t, "acquire", lock.Acquire, "release", recipes.Hold.Release)
			var hold recipes.Hold
			acquire := func() error { hold, err = lock.Acquire(t.ctx); return err }
			write := func() error { return hold.Write(t.ctx) }
			t.measure("(acquire)", acquire)
			t.measure("(first write)", write) // also creates the parent of guards
			t.measure("(release)", func() error { return hold.Release(t.ctx) })
			t.measure("acquire after a guarded write", acquire)
			t.measure("the first guarded write", write)
			t.measure("another one", write)
		},
	},
	"Once per period": {
		use: func(t trial) { _ = t.turn(t.hold()).Count(t.ctx) },
		operate: func(t trial) {
			first := t.hold()
			t.turn(first) // also creates the record, and the parent of guards
			t.must(first.Release(t.ctx))
			hold, turn := t.hold(), (*recipes.Turn)(nil)
			t.measure("ask", func() error { turn = t.turn(hold); return nil })
			t.measure("count", func() error { return turn.Count(t.ctx) })
			t.measure("release after that", func() error { return hold.Release(t.ctx) })
		},
	},
	"Election": {
		use: func(t trial) {
			election, err := t.s.Election(t.path, recipes.ElectionConfig{})
			t.must(err)
			leadership, err := election.Campaign(t.ctx, nil)
			t.must(err)
			t.must(leadership.Acknowledge(t.ctx, nil))
		},
		operate: func(t trial) {
			election, err := t.s.Election(t.path, recipes.ElectionConfig{})
			t.must(err)
			pair(t, "campaign", func(ctx context.Context) (recipes.Leadership, error) {
				return election.Campaign(ctx, nil)
			}, "resign", recipes.Leadership.Resign)
			var leadership recipes.Leadership
			campaign := func() error { leadership, err = election.Campaign(t.ctx, nil); return err }
			acknowledge := func() error { return leadership.Acknowledge(t.ctx, nil) }
			resign := func() error { return leadership.Resign(t.ctx) }
			t.measure("(campaign)", campaign)
			t.measure("(first acknowledge)", acknowledge) // also creates the parent of acknowledgements
			t.measure("(resign)", resign)
			t.measure("(campaign)", campaign)
			t.measure("acknowledge", acknowledge)
			t.measure("resign after that", resign)
			t.measure("(campaign)", campaign)
			t.measure("(acknowledge)", acknowledge)
			var values <-chan recipes.Leader
			t.measure("(first value of an observer) 3r", func() error { values, err = election.Observe(t.ctx); <-values; return err })
			t.measure("(observed acknowledgement) 2w 3r 1e", acknowledge)
		},
	},
	"Shared lock": {
		use: func(t trial) {
			lock, err := t.s.SharedLock(t.path, recipes.SharedLockConfig{})
			t.must(err)
			hold, err := lock.AcquireWrite(t.ctx)
			t.must(err)
			t.must(hold.Downgrade(t.ctx))
			_, err = lock.AcquireRead(t.ctx)
			t.must(err)
		},
		operate: func(t trial) {
			lock, err := t.s.SharedLock(t.path, recipes.SharedLockConfig{})
			t.must(err)
			pair(t, "acquire", lock.AcquireRead, "release", recipes.SharedHold.Release)
			var hold recipes.SharedHold
			t.measure("(acquire to write) 1w 2r", func() error { hold, err = lock.AcquireWrite(t.ctx); return err })
			t.measure("(downgrade) 1w 1r", func() error { return hold.Downgrade(t.ctx) })
		},
	},
	"Revocable shared lock": {
		operate: func(t trial) {
			lock, err := t.s.SharedLock(t.path, recipes.SharedLockConfig{Revocable: true, Grace: time.Millisecond})
			var hold recipes.SharedHold
			t.measure("(acquire)", func() error { hold, err = lock.AcquireWrite(t.ctx); return err })
			t.measure("ask", func() error { return lock.Revoke(t.ctx, hold.Znode()) })
			t.measure("(forced) 1w 3r 1e", func() error { return lock.RevokeForced(t.ctx, hold.Znode()) })
		},
	},
	"Priority lock": {
		use: func(t trial) {
			waits := make(chan struct{})
			lock, err := t.s.PriorityLock(t.path, recipes.PriorityLockConfig{})
			t.must(err)
			_, err = lock.AcquireRead(t.ctx)
			t.must(err)
			second, err := t.s.PriorityLock(t.path, recipes.PriorityLockConfig{Priority: 10, Joined: func(recipes.Place) { close(waits) }})
			t.must(err)
			go second.AcquireWrite(t.ctx)
			<-waits
		},
		operate: func(t trial) {
			lock, err := t.s.PriorityLock(t.path, recipes.PriorityLockConfig{})
			t.must(err)
			pair(t, "acquire to write", lock.AcquireWrite, "release", recipes.PriorityHold.Release)
			pair(t, "acquire to read", lock.AcquireRead, "(release of a reader) 1w", recipes.PriorityHold.Release)
		},
	},
	"Semaphore": {
		use: func(t trial) {
			semaphore, err := t.s.Semaphore(t.path, recipes.SemaphoreConfig{Permits: 2})
			t.must(err)
			_, err = semaphore.Acquire(t.ctx)
			t.must(err)
		},
		operate: func(t trial) {
			semaphore, err := t.s.Semaphore(t.path, recipes.SemaphoreConfig{Permits: 2})
			t.must(err)
			pair(t, "acquire", semaphore.Acquire, "release", recipes.Hold.Release)
		},
	},
	"Slots": {
		use: func(t trial) {
			waits := make(chan struct{}, 2)
			slots, err := t.s.Slots(t.path, recipes.SemaphoreConfig{Permits: 1, Joined: func(recipes.Place) { waits <- struct{}{} }})
			t.must(err)
			_, err = slots.Acquire(t.ctx)
			t.must(err)
			<-waits
			go slots.Acquire(t.ctx)
			<-waits
		},
		operate: func(t trial) {
			slots, err := t.s.Slots(t.path, recipes.SemaphoreConfig{Permits: 2})
			t.must(err)
			pair(t, "acquire", slots.Acquire, "release", recipes.SlotHold.Release)
		},
	},
	"Shares": {
		use: func(t trial) {
			shares, err := t.s.Shares(t.path, 1, recipes.SharesConfig{})
			t.must(err)
			portion, err := shares.Join(t.ctx)
			t.must(err)
			<-portion.Changes()
		},
	},
	"Barrier": {
		use: func(t trial) {
			barrier, err := t.s.Barrier(t.path)
			t.must(err)
			t.must(barrier.Set(t.ctx, nil))
		},
		operate: func(t trial) {
			barrier, _ := t.s.Barrier(t.path)
			set := func() error { return barrier.Set(t.ctx, nil) }
			remove := func() error { return barrier.Remove(t.ctx) }
			t.measure("(first)", set)
			t.measure("(first removal)", remove)
			t.measure("set", set)
			t.measure("remove", remove)
			t.measure("wait at a barrier that is not set", func() error { return barrier.Wait(t.ctx) })
		},
	},
	"Double barrier": {
		use: func(t trial) {
			barrier, err := t.s.DoubleBarrier(t.path, recipes.DoubleBarrierConfig{Size: 1})
			t.must(err)
			_, err = barrier.Enter(t.ctx, nil)
			t.must(err)
		},
	},
	"Queue": {
		use: func(t trial) {
			queue, err := t.s.Queue(t.path, recipes.QueueConfig{Capacity: 9, MaxDeliveries: 1})
			t.must(err)
			_, err = queue.PutMany(t.ctx, nil, nil)
			t.must(err)
			delivery, err := queue.Receive(t.ctx)
			t.must(err)
			t.must(delivery.Return(t.ctx))
		},
		operate: func(t trial) {
			queue, _ := t.s.Queue(t.path, recipes.QueueConfig{})
			put := func() error { _, err := queue.PutMany(t.ctx, nil, nil, nil); return err }
			take := func() error { _, err := queue.Take(t.ctx); return err }
			t.measure("(first)", put)
			t.measure("(first take)", take)
			t.measure("put", put)
			t.measure("take", take)
		},
	},
	"Priority queue": {
		use: func(t trial) {
			queue, err := t.s.PriorityQueue(t.path, recipes.QueueConfig{Capacity: 9, MaxDeliveries: 1})
			t.must(err)
			_, err = queue.PutMany(t.ctx, 5, nil, nil)
			t.must(err)
			delivery, err := queue.Receive(t.ctx)
			t.must(err)
			t.must(delivery.Return(t.ctx))
		},
		operate: func(t trial) {
			queue, _ := t.s.PriorityQueue(t.path, recipes.QueueConfig{})
			put := func() error { _, err := queue.PutMany(t.ctx, 1, nil, nil, nil); return err }
			take := func() error { _, err := queue.Take(t.ctx); return err }
			t.measure("(first)", put)
			t.measure("(first take)", take)
			t.measure("put", put)
			t.measure("take", take)
		},
	},
	"Two-phase commit": {
		use: func(t trial) {
			tx, err := t.s.Transaction(t.path, recipes.TransactionConfig{Variant: recipes.OwnNodes})
			t.must(err)
			t.must(tx.Begin(t.ctx, nil, "one", "two"))
			site, err := tx.Join(t.ctx, "one")
			t.must(err)
			_, err = tx.Abort(t.ctx, "enough")
			t.must(err)
			t.must(site.Done(t.ctx))
		},
	},
	"Group": {
		use: func(t trial) {
			for _, name := range []string{"", "ann"} {
				group, err := t.s.Group(t.path, recipes.GroupConfig{Name: name})
				t.must(err)
				_, err = group.Join(t.ctx, nil)
				t.must(err)
			}
		},
		operate: func(t trial) {
			group, err := t.s.Group(t.path, recipes.GroupConfig{})
			var member recipes.Membership
			join := func() error { member, err = group.Join(t.ctx, nil); return err }
			leave := func() error { return member.Leave(t.ctx) }
			t.measure("(first)", join)
			t.measure("(first leave)", leave)
			t.measure("join", join)
			t.measure("update", func() error { return member.Update(t.ctx, nil) })
			t.measure("leave", leave)
		},
	},
	"Names": {
		use: func(t trial) {
			names, err := t.s.Names(t.path)
			t.must(err)
			t.must(names.RegisterPersistent(t.ctx, "ann", nil))
			t.must(names.RegisterPersistent(t.ctx, "bob", nil))
			t.must(names.Unregister(t.ctx, "bob", 0))
		},
		operate: func(t trial) {
			names, err := t.s.Names(t.path)
			var registration recipes.Registration
			register := func() error { registration, err = names.Register(t.ctx, "ann", nil); return err }
			unregister := func() error { return registration.Unregister(t.ctx) }
			t.measure("(first)", register)
			t.measure("(first unregister)", unregister)
			t.measure("register", register)
			t.measure("look up", func() error { _, err := names.Lookup(t.ctx, "ann"); return err })
			t.measure("unregister", unregister)
		},
	},
	"Configuration": {
		use: func(t trial) {
			configuration, err := t.s.Configuration(t.path)
			t.must(err)
			revision, err := configuration.Set(t.ctx, "ann", nil, recipes.AnyRevision)
			t.must(err)
			_, err = configuration.Set(t.ctx, "ann", nil, revision)
			t.must(err)
		},
		operate: func(t trial) {
			configuration, _ := t.s.Configuration(t.path)
			revision := recipes.NoRevision
			set := func() (err error) {
				revision, err = configuration.Set(t.ctx, "ann", nil, revision)
				return err
			}
			t.measure("(first)", set)
			t.measure("(first comparison)", set)
			t.measure("set", set)
			t.measure("get", func() error { _, err := configuration.Get(t.ctx, "ann"); return err })
			t.measure("delete", func() error { return configuration.Delete(t.ctx, "ann", revision) })
		},
	},
	"Counter": {
		use: func(t trial) {
			counter, err := t.s.Counter(t.path, recipes.CounterConfig{})
			t.must(err)
			_, err = counter.Add(t.ctx, 1)
			t.must(err)
		},
	},
	"Latch": {
		use: func(t trial) {
			latch, err := t.s.Latch(t.path, recipes.LatchConfig{Count: 1})
			t.must(err)
			_, err = latch.CountDown(t.ctx)
			t.must(err)
		},
	},
	"Counter, latch": {
		operate: func(t trial) {
			counter, _ := t.s.Counter("/counter", recipes.CounterConfig{})
			add := func() error { _, err := counter.Add(t.ctx, 1); return err }
			t.measure("(first add)", add)
			t.measure("add", add)
			latch, _ := t.s.Latch("/latch", recipes.LatchConfig{Count: 3})
			countDown := func() error { _, err := latch.CountDown(t.ctx); return err }
			t.measure("(first count down)", countDown)
			t.measure("count down", countDown)
		},
	},
}

// pair measures an operation and its end, after a first use of the path that also creates parents
// and receipts.
func pair[G any](t trial, begin string, do func(context.Context) (G, error), end string, undo func(G, context.Context) error) {
	var g G
	doing := func() (err error) { g, err = do(t.ctx); return err }
	undoing := func() error { return undo(g, t.ctx) }
	t.measure("(first)", doing)
	t.measure("(first end)", undoing)
	t.measure(begin, doing)
	t.measure(end, undoing)
}

func (t trial) hold() recipes.Hold {
	lock, err := t.s.Lock(t.path, recipes.LockConfig{})
	t.must(err)
	hold, err := lock.Acquire(t.ctx)
	t.must(err)
	return hold
}

func (t trial) turn(hold recipes.Hold) *recipes.Turn {
	record, err := t.s.Configuration(t.path)
	t.must(err)
	turn, err := recipes.OncePer(t.ctx, hold, record, time.Hour)
	t.must(err)
	return turn
}
