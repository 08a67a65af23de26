package recipes_test

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// documentation is how a test checks a row of the tables in docs/recipes.md.
type documentation struct {
	// use creates each znode that one session can create with the recipe. nil: the table of
	// znodes has no such row.
	use func(trial)
	// operate does each operation in the table of costs, after the parents and receipts of
	// the recipe exist. Operations in parentheses are not in the table, or only in its prose. A
	// cost that follows them belongs to them. nil: the table has no such row, or only prose.
	operate func(trial)
}

// documented has a row for each row of the tables. A recipe of the catalog of grants needs one only
// for znodes and costs that an uncontended grant does not show.
var documented = withTheCatalog(map[string]documentation{
	"Lock": {
		use: func(t trial) {
			for _, strategy := range []recipes.Strategy{recipes.Handoff, recipes.Predecessor} {
				lock := must.Get(t.s.Lock(t.path, recipes.LockConfig{Strategy: strategy}))(t)
				waits := make(chan struct{})
				if strategy == recipes.Predecessor { // this contender waits for the one that uses Handoff
					lock = must.Get(t.s.Lock(t.path, recipes.LockConfig{Strategy: strategy, Joined: func(recipes.Place) { close(waits) }}))(t)
					go lock.Acquire(t.ctx)
					<-waits
					continue
				}
				hold := must.Get(lock.Acquire(t.ctx))(t)
				t.must(hold.Write(t.ctx))
			}
		},
		operate: func(t trial) {
			lock := must.Get(t.s.Lock(t.path, recipes.LockConfig{}))(t)
			pair(t, "acquire", lock.Acquire, "release", recipes.Hold.Release)
			var hold recipes.Hold
			acquire := func() (err error) { hold, err = lock.Acquire(t.ctx); return err }
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
			election := must.Get(t.s.Election(t.path, recipes.ElectionConfig{}))(t)
			leadership := must.Get(election.Campaign(t.ctx, nil))(t)
			t.must(leadership.Acknowledge(t.ctx, nil))
		},
		operate: func(t trial) {
			election := must.Get(t.s.Election(t.path, recipes.ElectionConfig{}))(t)
			pair(t, "campaign", func(ctx context.Context) (recipes.Leadership, error) {
				return election.Campaign(ctx, nil)
			}, "resign", recipes.Leadership.Resign)
			var leadership recipes.Leadership
			campaign := func() (err error) { leadership, err = election.Campaign(t.ctx, nil); return err }
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
			t.measure("(first value of an observer) 3r", func() (err error) { values, err = election.Observe(t.ctx); <-values; return err })
			t.measure("(observed acknowledgement) 2w 3r 1e", acknowledge)
		},
	},
	"Shared lock": {
		use: func(t trial) {
			lock := must.Get(t.s.SharedLock(t.path, recipes.SharedLockConfig{}))(t)
			hold := must.Get(lock.AcquireWrite(t.ctx))(t)
			t.must(hold.Downgrade(t.ctx))
			must.Get(lock.AcquireRead(t.ctx))(t)
		},
		operate: func(t trial) {
			lock := must.Get(t.s.SharedLock(t.path, recipes.SharedLockConfig{}))(t)
			pair(t, "acquire", lock.AcquireRead, "release", recipes.SharedHold.Release)
			var hold recipes.SharedHold
			t.measure("(acquire to write) 1w 2r", func() (err error) { hold, err = lock.AcquireWrite(t.ctx); return err })
			t.measure("(downgrade) 1w 1r", func() error { return hold.Downgrade(t.ctx) })
		},
	},
	"Revocable shared lock": {
		operate: func(t trial) {
			lock := must.Get(t.s.SharedLock(t.path, recipes.SharedLockConfig{Revocable: true, Grace: time.Millisecond}))(t)
			var hold recipes.SharedHold
			t.measure("(acquire)", func() (err error) { hold, err = lock.AcquireWrite(t.ctx); return err })
			t.measure("ask", func() error { return lock.Revoke(t.ctx, hold.Znode()) })
			t.measure("(forced) 1w 3r 1e", func() error { return lock.RevokeForced(t.ctx, hold.Znode()) })
			_ = hold.Release(t.ctx) // otherwise it would read once more when the server deletes the path
		},
	},
	"Priority lock": {
		use: func(t trial) {
			waits := make(chan struct{})
			lock := must.Get(t.s.PriorityLock(t.path, recipes.PriorityLockConfig{}))(t)
			must.Get(lock.AcquireRead(t.ctx))(t)
			second := must.Get(t.s.PriorityLock(t.path, recipes.PriorityLockConfig{Priority: 10, Joined: func(recipes.Place) { close(waits) }}))(t)
			go second.AcquireWrite(t.ctx)
			<-waits
		},
		operate: func(t trial) {
			lock := must.Get(t.s.PriorityLock(t.path, recipes.PriorityLockConfig{}))(t)
			pair(t, "acquire to write", lock.AcquireWrite, "release", recipes.PriorityHold.Release)
			pair(t, "acquire to read", lock.AcquireRead, "(release of a reader) 1w", recipes.PriorityHold.Release)
		},
	},
	"Slots": {
		use: func(t trial) {
			waits := make(chan struct{}, 2)
			slots := must.Get(t.s.Slots(t.path, recipes.SemaphoreConfig{Permits: 1, Joined: func(recipes.Place) { waits <- struct{}{} }}))(t)
			must.Get(slots.Acquire(t.ctx))(t)
			<-waits
			go slots.Acquire(t.ctx)
			<-waits
		},
		operate: func(t trial) {
			slots := must.Get(t.s.Slots(t.path, recipes.SemaphoreConfig{Permits: 2}))(t)
			pair(t, "acquire", slots.Acquire, "release", recipes.SlotHold.Release)
		},
	},
	"Shares": {
		use: func(t trial) {
			shares := must.Get(t.s.Shares(t.path, 1, recipes.SharesConfig{}))(t)
			portion := must.Get(shares.Join(t.ctx))(t)
			<-portion.Changes()
		},
	},
	"Barrier": {
		use: func(t trial) {
			barrier := must.Get(t.s.Barrier(t.path))(t)
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
			wait := func() error { return barrier.Wait(t.ctx) }
			t.measure("wait at a barrier that is not set", wait)
			t.must(set())
			waited := make(chan error, 1)
			t.measure("(wait) 1r", func() error { go func() { waited <- wait() }(); return nil })
			t.measure("(removal with a waiter) 1w 2r 1e", func() error { return errors.Join(remove(), <-waited) })
			t.must(set())
			go wait()
		},
	},
	"Double barrier": {
		use: func(t trial) {
			barrier := must.Get(t.s.DoubleBarrier(t.path, recipes.DoubleBarrierConfig{Size: 1}))(t)
			must.Get(barrier.Enter(t.ctx, nil))(t)
		},
		operate: func(t trial) {
			barrier, _ := t.s.DoubleBarrier(t.path, recipes.DoubleBarrierConfig{Size: 3})
			passages, left := make(chan recipes.Passage, 3), make(chan error, 3)
			enter := func() error { p, err := barrier.Enter(t.ctx, nil); passages <- p; return err }
			waits := func() error { go enter(); return nil }
			t.measure("(first)", waits)
			t.measure("(enter and wait) 1w 4r", waits)
			// The last member checks for third-party members, creates its znode, reads ready, lists
			// the members, and creates ready. Then all three read ready.
			t.measure("(the last one enters) 2w 7r 1e", enter)
			in := []recipes.Passage{<-passages, <-passages, <-passages}
			slices.SortFunc(in, func(a, b recipes.Passage) int { return int(a.Token() - b.Token()) })
			leave := func(i int) func() error {
				return func() error { go func() { left <- in[i].Leave(t.ctx) }(); return nil }
			}
			t.measure("(leave, and wait for the lowest) 1w 2r 1e", leave(2))
			t.measure("(leave, and wait too) 1w 2r 1e", leave(1))
			t.measure("(the lowest leaves) 1w 3r 1e", leave(0))
			t.must(errors.Join(<-left, <-left, <-left))
			t.must(waits())
		},
	},
	"Queue": {
		use: func(t trial) {
			queue := must.Get(t.s.Queue(t.path, recipes.QueueConfig{Capacity: 9, MaxDeliveries: 1}))(t)
			must.Get(queue.PutMany(t.ctx, nil, nil))(t)
			delivery := must.Get(queue.Receive(t.ctx))(t)
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
			bounded, _ := t.s.Queue(t.path, recipes.QueueConfig{Capacity: 1000})
			putBounded := func() error { return errOf(bounded.Put(t.ctx, nil)) }
			var deliveries []recipes.Delivery
			receive := func(n int) func() error {
				return func() (err error) { deliveries, err = queue.ReceiveMany(t.ctx, n); return err }
			}
			acknowledge := func() error { return queue.AckMany(t.ctx, deliveries...) }
			t.measure("(first bounded put)", putBounded)
			t.measure("(bounded put) 1w 2r", putBounded)
			t.measure("(first receive)", receive(1))
			t.measure("(acknowledge) 1w", acknowledge)
			t.must(errOf(queue.PutMany(t.ctx, make([][]byte, 200)...)))
			t.must(take()) // lists
			t.measure("(receive) 1w 1r 1e", receive(1))
			t.measure("(return) 1w", func() error { return deliveries[0].Return(t.ctx) })
			t.must(take())
			t.measure("(receive 50) 1w 50r", receive(50))
			t.measure("(acknowledge 50) 1w", acknowledge)
			t.measure("(take 50) 1w 50r", func() error { return errOf(queue.TakeMany(t.ctx, 50)) })
			t.measure("(length) 1r", func() error { return errOf(queue.Len(t.ctx)) })
		},
	},
	"Priority queue": {
		use: func(t trial) {
			queue := must.Get(t.s.PriorityQueue(t.path, recipes.QueueConfig{Capacity: 9, MaxDeliveries: 1}))(t)
			must.Get(queue.PutMany(t.ctx, 5, nil, nil))(t)
			delivery := must.Get(queue.Receive(t.ctx))(t)
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
			tx := must.Get(t.s.Transaction(t.path, recipes.TransactionConfig{Variant: recipes.OwnNodes}))(t)
			t.must(tx.Begin(t.ctx, nil, "one", "two"))
			site := must.Get(tx.Join(t.ctx, "one"))(t)
			must.Get(tx.Abort(t.ctx, "enough"))(t)
			t.must(site.Done(t.ctx))
		},
		operate: func(t trial) { // a vote is missing: all wait
			for _, v := range recipes.Variants() {
				tx := must.Get(t.s.Transaction(t.path+"-"+string(v), recipes.TransactionConfig{Variant: v}))(t)
				t.must(tx.Begin(t.ctx, nil, "one", "two"))
				site := must.Get(tx.Join(t.ctx, "one"))(t)
				go tx.Coordinate(t.ctx)
				go site.Wait(t.ctx)
			}
		},
	},
	"Group": {
		use: func(t trial) {
			for _, name := range []string{"", "ann"} {
				group := must.Get(t.s.Group(t.path, recipes.GroupConfig{Name: name}))(t)
				must.Get(group.Join(t.ctx, nil))(t)
			}
		},
		operate: func(t trial) {
			group := must.Get(t.s.Group(t.path, recipes.GroupConfig{}))(t)
			var member recipes.Membership
			join := func() (err error) { member, err = group.Join(t.ctx, nil); return err }
			leave := func() error { return member.Leave(t.ctx) }
			t.measure("(first)", join)
			t.measure("(first leave)", leave)
			t.measure("join", join)
			update := func() error { return member.Update(t.ctx, nil) }
			t.measure("update", update)
			t.measure("leave", leave)
			t.must(join())
			t.measure("(list one member) 2r", func() error { return errOf(group.Members(t.ctx)) })
			named := must.Get(t.s.Group(t.path, recipes.GroupConfig{Name: "ann"}))(t)
			t.measure("(join by name) 1w 2r", func() error { return errOf(named.Join(t.ctx, nil)) })
			members := must.Get(group.Watch(t.ctx))(t)
			for len(<-members) != 2 {
			}
			t.measure("(watched update) 1w 1r 1e", update)
		},
	},
	"Names": {
		use: func(t trial) {
			names := must.Get(t.s.Names(t.path))(t)
			t.must(names.RegisterPersistent(t.ctx, "ann", nil))
			t.must(names.RegisterPersistent(t.ctx, "bob", nil))
			t.must(names.Unregister(t.ctx, "bob", 0))
		},
		operate: func(t trial) {
			names := must.Get(t.s.Names(t.path))(t)
			var registration recipes.Registration
			register := func() (err error) { registration, err = names.Register(t.ctx, "ann", nil); return err }
			unregister := func() error { return registration.Unregister(t.ctx) }
			t.measure("(first)", register)
			t.measure("(first unregister)", unregister)
			t.measure("register", register)
			t.measure("look up", func() error { _, err := names.Lookup(t.ctx, "ann"); return err })
			t.measure("unregister", unregister)
			forGood := func() error { return names.RegisterPersistent(t.ctx, "mail", nil) }
			t.measure("(first for good)", forGood)
			t.measure("(first to be unregistered) 4w 5r", func() error { return names.Unregister(t.ctx, "mail", 0) })
			t.measure("(register for good) 1w", forGood)
			t.must(register())
			t.measure("(list two) 3r", func() error { return errOf(names.List(t.ctx)) })
			records := must.Get(names.Watch(t.ctx, "ann"))(t)
			<-records
			t.measure("(watched update) 1w 1r 1e", func() error { return registration.Update(t.ctx, []byte("x")) })
			t.measure("(unregister for good) 1w 1r", func() error { return names.Unregister(t.ctx, "mail", 0) })
		},
	},
	"Configuration": {
		use: func(t trial) {
			configuration := must.Get(t.s.Configuration(t.path))(t)
			revision := must.Get(configuration.Set(t.ctx, "ann", nil, recipes.AnyRevision))(t)
			must.Get(configuration.Set(t.ctx, "ann", nil, revision))(t)
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
			put := func(key string) error { return errOf(configuration.Set(t.ctx, key, nil, recipes.AnyRevision)) }
			remove := func(key string) error { return configuration.Delete(t.ctx, key, recipes.AnyRevision) }
			t.must(errors.Join(put("ann"), put("bob/c"), remove("bob/c"))) // and the count in bob
			t.measure("(snapshot of three) 6r", func() error { return errOf(configuration.Snapshot(t.ctx)) })
			t.measure("(delete a parent) 1w 2r", func() error { return remove("bob") })
			key, tree := must.Get(configuration.Watch(t.ctx, "ann"))(t), must.Get(configuration.WatchTree(t.ctx))(t)
			<-key
			<-tree
			t.measure("(change that two watches see) 1w 3r 1e", func() error { return put("ann") })
		},
	},
	"Counter": {
		use: func(t trial) {
			counter := must.Get(t.s.Counter(t.path, recipes.CounterConfig{}))(t)
			must.Get(counter.Add(t.ctx, 1))(t)
		},
	},
	"Latch": {
		use: func(t trial) {
			latch := must.Get(t.s.Latch(t.path, recipes.LatchConfig{Count: 1}))(t)
			must.Get(latch.CountDown(t.ctx))(t)
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
			t.measure("(get) 1r", func() error { return errOf(counter.Get(t.ctx)) })
			waited := make(chan error, 1)
			t.measure("(wait) 1r", func() error { go func() { waited <- latch.Wait(t.ctx) }(); return nil })
			t.measure("(the last count) 1w 3r 1e", func() error { return errors.Join(countDown(), <-waited) })
			t.measure("(count down what is open) 1r", countDown)
		},
	},
})
