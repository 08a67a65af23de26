package simulation

import (
	"context"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// resumed is a scenario whose clients contend in sessions that are resumed. Its host
// makes that mistake.
func resumed(name string, m mistake, pick func(*client) kind) scenario {
	sc := scenario{name: name, open: resumes(m), moves: true, begin: func(*World) game { return sessionTurns(pick) }}
	switch what := pick(nil); {
	case what.path == namesPath:
		sc.paths = []string{what.path}
	case what.permits == 1:
		sc.line, sc.paths = what.path, []string{what.path}
	default:
		sc.line = what.path
	}
	return sc
}

func resumedLocks(name string, m mistake) scenario { return resumed(name, m, lockKind) }

// choose picks one, or the first if no client does.
func choose[T any](c *client, choices ...T) T {
	if c == nil {
		return choices[0]
	}
	return pick(c.chance, choices...)
}

func lockKind(c *client) kind {
	strategy := choose(c, recipes.Strategies()...)
	return kindOf("/lock", 1, false, func(s recipes.Client, joined func(recipes.Place)) (recipes.Lock, error) {
		return s.Lock("/lock", recipes.LockConfig{Strategy: strategy, Joined: joined})
	}, recipes.Lock.Acquire, recipes.Hold.Release)
}

func electionKind(c *client) kind {
	strategy := choose(c, recipes.Strategies()...)
	return kindOf("/election", 1, false, func(s recipes.Client, joined func(recipes.Place)) (recipes.Election, error) {
		return s.Election("/election", recipes.ElectionConfig{Strategy: strategy, Joined: joined})
	}, func(e recipes.Election, ctx context.Context) (recipes.Leadership, error) { return e.Campaign(ctx, nil) }, recipes.Leadership.Resign)
}

func semaphoreKind(c *client) kind {
	strategy := choose(c, recipes.Strategies()...)
	return kindOf("/semaphore", 2, false, func(s recipes.Client, joined func(recipes.Place)) (recipes.Semaphore, error) {
		return s.Semaphore("/semaphore", recipes.SemaphoreConfig{Permits: 2, Strategy: strategy, Joined: joined})
	}, recipes.Semaphore.Acquire, recipes.Hold.Release)
}

func slotsKind(c *client) kind {
	strategy := choose(c, recipes.Strategies()...)
	return kindOf(slotsPath, 2, false, func(s recipes.Client, joined func(recipes.Place)) (recipes.Slots, error) {
		return s.Slots(slotsPath, recipes.SemaphoreConfig{Permits: 2, Strategy: strategy, Joined: joined})
	}, recipes.Slots.Acquire, recipes.SlotHold.Release)
}

func sharedKind(c *client) kind {
	strategy, shared := choose(c, recipes.Strategies()...), choose(c, true, false)
	acquire := recipes.SharedLock.AcquireWrite
	if shared {
		acquire = recipes.SharedLock.AcquireRead
	}
	return kindOf("/shared", 1, shared, func(s recipes.Client, joined func(recipes.Place)) (recipes.SharedLock, error) {
		return s.SharedLock("/shared", recipes.SharedLockConfig{Strategy: strategy, Joined: joined})
	}, acquire, recipes.SharedHold.Release)
}

func priorityKind(c *client) kind {
	strategy, shared := choose(c, recipes.Strategies()...), choose(c, true, false)
	acquire := recipes.PriorityLock.AcquireWrite
	if shared {
		acquire = recipes.PriorityLock.AcquireRead
	}
	return kindOf("/priority", 1, shared, func(s recipes.Client, joined func(recipes.Place)) (recipes.PriorityLock, error) {
		return s.PriorityLock("/priority", recipes.PriorityLockConfig{Strategy: strategy, Joined: joined})
	}, acquire, recipes.PriorityHold.Release)
}

const namesPath = "/names"

func nameKind(*client) kind {
	return kindOf(namesPath, 1, false, func(s recipes.Client, _ func(recipes.Place)) (recipes.Names, error) {
		return s.Names(namesPath)
	}, func(n recipes.Names, ctx context.Context) (recipes.Registration, error) {
		return n.Register(ctx, "owner", nil)
	}, recipes.Registration.Unregister)
}
