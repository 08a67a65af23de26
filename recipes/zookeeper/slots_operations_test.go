package zookeeper_test

import (
	"context"
	"errors"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

func slotsWays() []way {
	open := func(s recipes.Client, path string, o options) (recipes.Slots, error) {
		return s.Slots(path, semaphoreConfig(o))
	}
	return []way{wayBy(way{
		name: "slots", method: "Slots.Acquire", tries: "Slots.TryAcquire", gives: "Hold.Release", kind: recipes.KindSemaphore, share: aPermit,
		shares: map[recipes.Dialect][]string{recipes.ZooKeeper: {"our semaphore", "our slot"}},
		uses:   usesOfPermits(),
	}, open, recipes.Slots.Acquire, recipes.Slots.TryAcquire, recipes.SlotHold.Release)}
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

// whileItClaims are the changes by others before the victim's claim. The other session has
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
		{name: "the claimed znode is deleted", at: zktest.Op(zkserver.OpGetData, "-slot-1-"), do: func() error { return s.removeLike("-slot-1-") }, want: recipes.ErrRemoved, then: nothing},
	}
}
