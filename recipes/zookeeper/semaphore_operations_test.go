package zookeeper_test

import (
	"context"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

func semaphoreWays() []way {
	open := func(s recipes.Client, path string, o options) (recipes.Semaphore, error) {
		return s.Semaphore(path, semaphoreConfig(o))
	}
	return []way{wayBy(way{
		name: "semaphore", method: "Semaphore.Acquire", tries: "Semaphore.TryAcquire", gives: "Hold.Release", kind: recipes.KindSemaphore, share: aPermit,
		shares: map[recipes.Dialect][]string{
			recipes.ZooKeeper: {"our semaphore", "our slot"},
			recipes.Curator:   {"a lease of SemaphoreV2", "a lease of SemaphoreV2 whose locks are gone", "a waiter of SemaphoreV2"},
			recipes.Kazoo:     {"kazoo's semaphore"},
		},
		uses: append(usesOfPermits(),
			use{operated, options{dialect: recipes.Curator, permits: 2}}, use{held | waited, options{dialect: recipes.Curator}},
			use{operated, options{dialect: recipes.Kazoo, permits: 2}}, use{held | waited, options{dialect: recipes.Kazoo}}),
	}, open, recipes.Semaphore.Acquire, recipes.Semaphore.TryAcquire, recipes.Hold.Release)}
}

func semaphoreConfig(o options) recipes.SemaphoreConfig {
	return recipes.SemaphoreConfig{Permits: max(o.permits, 1), Strategy: o.strategy, Dialect: o.dialect, Joined: o.joined}
}

// usesOfPermits are the uses of semaphores and slots. By handoff they wait as by predecessor.
func usesOfPermits() []use {
	return []use{
		{held | moved, options{}},
		{operated, options{strategy: recipes.Herd, permits: 2}},
		{operated, options{strategy: recipes.Predecessor, permits: 2}},
	}
}

// semaphoreOperations are those in which the contenders of a semaphore agree on the number
// of permits.
func semaphoreOperations() (all []operation) {
	permits := func(r zkserver.Request) bool { return r.Op == zkserver.OpMulti && r.Path == stagePath }
	agree := func(dialect recipes.Dialect, between func(s *stage) []meddling) {
		all = append(all, operation{"Semaphore.TryAcquire, permits, " + string(dialect), func(s *stage) doing {
			s.ok(s.barrier(s.other).Set(s.ctx, nil))
			m := s.semaphore(s.victim, recipes.SemaphoreConfig{Dialect: dialect})
			var mine recipes.Hold
			return doing{
				act:     func(ctx context.Context) (err error) { mine, err = m.TryAcquire(ctx); return err },
				end:     func() error { return mine.Release(s.ctx) },
				denied:  []denial{{znode: stagePath, perms: noWrite}},
				between: between(s),
			}
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
		var mine recipes.Hold
		return doing{
			act: func(ctx context.Context) (err error) { mine, err = m.TryAcquire(ctx); return err },
			end: func() error { return mine.Release(s.ctx) },
			between: []meddling{{name: "another deletes the path", at: func(r zkserver.Request) bool {
				return r.Op == zkserver.OpDelete && r.Path == stagePath
			}, do: func() error { return s.remove(stagePath) }}},
		}
	}})
	for _, d := range []recipes.Dialect{recipes.Curator, recipes.Kazoo} {
		all = append(all, operation{"Semaphore.Acquire, " + string(d) + ", one lease", func(s *stage) doing {
			at := func(in recipes.Client) recipes.Semaphore {
				return must.Get(in.Semaphore(stagePath, recipes.SemaphoreConfig{Permits: 1, Dialect: d}))(s.T)
			}
			theirs := must.Get(at(s.other).Acquire(s.ctx))(s.T)
			var mine recipes.Hold
			return doing{
				act:    func(ctx context.Context) (err error) { mine, err = at(s.victim).Acquire(ctx); return err },
				happen: func() error { return theirs.Release(s.ctx) },
				end:    func() error { return mine.Release(s.ctx) },
			}
		}})
	}
	return all
}
