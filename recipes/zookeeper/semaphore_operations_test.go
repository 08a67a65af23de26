package zookeeper_test

import (
	"context"
	"errors"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

func semaphoreWays() []way {
	return []way{wayOf("semaphore", way{
		share: aPermit,
		shares: map[recipes.Dialect][]string{
			recipes.ZooKeeper: {"our semaphore"},
			recipes.Curator:   {"a lease of SemaphoreV2", "a lease of SemaphoreV2 whose locks are gone", "a waiter of SemaphoreV2"},
			recipes.Kazoo:     {"kazoo's semaphore"},
		},
		uses: append(usesOfPermits(),
			use{operated, options{Dialect: recipes.Curator, Permits: 2}}, use{held | waited, options{Dialect: recipes.Curator}},
			use{operated, options{Dialect: recipes.Kazoo, Permits: 2}}, use{held | waited, options{Dialect: recipes.Kazoo}}),
	}, nil), wayOf("slots", way{
		share:  aPermit,
		shares: map[recipes.Dialect][]string{recipes.ZooKeeper: {"our semaphore"}},
		uses:   usesOfPermits(),
	}, nil)}
}

// usesOfPermits are the uses of semaphores and slots. By handoff they wait as by predecessor.
func usesOfPermits() []use {
	return []use{
		{held | moved, options{}},
		{operated, options{Strategy: recipes.Herd, Permits: 2}},
		{operated, options{Strategy: recipes.Predecessor, Permits: 2}},
	}
}

func (s *stage) semaphore(in recipes.Recipes, cfg recipes.SemaphoreConfig) recipes.Semaphore {
	cfg.Permits = max(cfg.Permits, 2)
	return must.Get(in.Semaphore(stagePath, cfg))(s.T)
}

// semaphoreOperations are those in which the contenders of a semaphore agree on the number
// of permits.
func semaphoreOperations() (all []operation) {
	permits := func(r zkserver.Request) bool { return r.Op == zkserver.OpMulti && r.Path == stagePath }
	agree := func(dialect recipes.Dialect, between func(s *stage) []meddling) {
		all = append(all, operation{"Semaphore.TryAcquire, permits, " + string(dialect), func(s *stage) doing {
			s.ok(s.barrier(s.other).Set(s.ctx, nil))
			m := s.semaphore(s.victim, recipes.SemaphoreConfig{Dialect: dialect})
			do := granting(s, m.TryAcquire)
			do.denied, do.between = []denial{{znode: stagePath, perms: noWrite}}, between(s)
			return do
		}})
	}
	agree(recipes.ZooKeeper, func(s *stage) []meddling {
		return []meddling{
			{name: "another writes the same", at: permits, do: func() error { return s.write(stagePath, "permits=2") }},
			{name: "another writes a different number, and does not join", at: permits, do: func() error { return s.write(stagePath, "permits=3") }},
		}
	})
	agree(recipes.Kazoo, func(s *stage) []meddling {
		return []meddling{
			{name: "another writes the same", at: permits, do: func() error { return s.write(stagePath, "2") }},
			{name: "another writes a different number", at: permits, do: func() error { return s.write(stagePath, "3") }, want: recipes.ErrMismatch},
			{name: "the path is deleted", at: permits, do: func() error { return s.remove(stagePath) }},
		}
	})
	all = append(all, operation{"Semaphore.TryAcquire, a path of another number", func(s *stage) doing {
		s.ok(s.barrier(s.other).Set(s.ctx, nil))
		s.ok(s.write(stagePath, "permits=3"))
		m := s.semaphore(s.victim, recipes.SemaphoreConfig{})
		do := granting(s, m.TryAcquire)
		do.between = []meddling{{name: "another deletes the path", at: func(r zkserver.Request) bool {
			return r.Op == zkserver.OpDelete && r.Path == stagePath
		}, do: func() error { return s.remove(stagePath) }}}
		return do
	}})
	for _, d := range []recipes.Dialect{recipes.Curator, recipes.Kazoo} {
		all = append(all, operation{"Semaphore.Acquire, " + string(d) + ", one lease", func(s *stage) doing {
			at := func(in recipes.Client) recipes.Semaphore {
				return must.Get(in.Semaphore(stagePath, recipes.SemaphoreConfig{Permits: 1, Dialect: d}))(s.T)
			}
			theirs := must.Get(at(s.other).Acquire(s.ctx))(s.T)
			do := granting(s, at(s.victim).Acquire)
			do.happen = func() error { return theirs.Release(s.ctx) }
			return do
		}})
	}
	return append(all, slotsOperations()...)
}

func (s *stage) slots(in recipes.Recipes, cfg recipes.SemaphoreConfig) recipes.Slots {
	cfg.Permits = max(cfg.Permits, 2)
	return must.Get(in.Slots(stagePath, cfg))(s.T)
}

// slotsOperations are the operations in which a contender with a permit claims a number. The
// ways cover what slots have in common with other wait queues.
func slotsOperations() []operation {
	three := recipes.SemaphoreConfig{Permits: 3}
	claim := operation{"Slots.TryAcquire, a claim", func(s *stage) doing {
		theirs := must.Get(s.slots(s.other, three).Acquire(s.ctx))(s.T)
		var mine recipes.SlotHold
		return doing{
			act: func(ctx context.Context) (err error) {
				mine, err = s.slots(s.victim, three).TryAcquire(ctx)
				if err == nil && !s.expires && (mine.Slot() == theirs.Slot() && theirs.Err() == nil || !s.present(mine.Znode())) {
					s.Errorf("number %d is granted by %s", mine.Slot(), mine.Znode())
				}
				return err
			},
			end: func() error { return errors.Join(mine.Write(s.ctx), mine.Release(s.ctx)) },
			denied: []denial{{znode: stagePath, perms: noWrite, then: func() {
				calm()
				if own := s.owned(); len(own) > 0 {
					s.Errorf("left behind: %s", own)
				}
			}}},
			between: whileItClaims(s, theirs, func() error { return sole(s.slots(s.other, three).Acquire)(s.ctx) }, func() recipes.SlotHold { return mine }),
		}
	}}
	return []operation{claim, standing("Slots.Contenders", func(ctx context.Context, s *stage, _ int) error {
		return sole(s.slots(s.other, recipes.SemaphoreConfig{}).Acquire)(ctx)
	}, func(s *stage) func(context.Context) ([]recipes.Contender, error) {
		return s.slots(s.victim, recipes.SemaphoreConfig{}).Contenders
	})}
}

// after returns a function that is true for each request that follows the first one that matches.
func after(matches func(zkserver.Request) bool) func(zkserver.Request) bool {
	met := false
	return func(r zkserver.Request) bool {
		before := met
		met = met || matches(r)
		return before
	}
}

// whileItClaims are the changes by others before the victim's claim, and after it. The other session has
// number 0, and number 1 is the next one.
func whileItClaims(s *stage, theirs recipes.SlotHold, another func() error, mine func() recipes.SlotHold) []meddling {
	claim := func(r zkserver.Request) bool { return r.Op == zkserver.OpMulti && r.Path == stagePath }
	number := func(want int) func() {
		return func() {
			if got := mine().Slot(); got != want {
				s.Errorf("the number is %d; want %d", got, want)
			}
		}
	}
	nothing := func() {
		calm()
		if own := s.owned(); len(own) > 0 {
			s.Errorf("left behind: %s", own)
		}
	}
	return []meddling{
		{name: "another claims the number", at: claim, do: another, then: number(2)},
		{name: "a lower number becomes free", at: claim, do: func() error { return theirs.Release(s.ctx) }, then: number(1)},
		{name: "the lease is deleted", at: claim, do: func() error { return s.remove(s.owned()[0]) }, want: recipes.ErrRemoved, then: nothing},
		{name: "the same number of permits is written", at: claim, do: func() error { return s.write(stagePath, "permits=3") }, then: number(1)},
		{name: "another number of permits is written", at: claim, do: func() error { return s.write(stagePath, "permits=4") }, want: recipes.ErrMismatch, then: nothing},
		{name: "the lease is written", at: claim, do: func() error { return s.write(s.owned()[0], "x") }, want: recipes.ErrRemoved, then: nothing},
		{name: "the lease is deleted after the claim", at: after(claim), do: func() error { return s.remove(s.owned()[0]) }, want: recipes.ErrRemoved, then: nothing},
		{name: "the lease is written after the claim", at: after(claim), do: func() error { return s.write(s.owned()[0], "zkrecipes: slot=1\n") }, want: recipes.ErrRemoved, then: nothing},
	}
}
