package recipestest

import (
	"context"
	"slices"
	"sync/atomic"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// semaphoreTests tests what a semaphore promises.
func semaphoreTests() []test {
	return slices.Concat(queued(semaphoreKind, recipes.Strategies()...), []test{
		{"n contenders are granted, and no more", func(f *fixture) {
			s := f.open()
			var holds []recipes.Hold
			for range 3 {
				holds = append(holds, f.permit(f.open(), f.path("a"), 3))
			}
			w := f.permitWaits(s, f.path("a"), 3)
			f.failIf(w.place.Position != 3, "joined at %d; want 3", w.place.Position)
			for _, h := range holds {
				f.held(h)
				f.must(h.Write(f.ctx))
			}
			w.blocked(f)
			f.must(holds[2].Release(f.ctx))
			f.held(w.must(f))
		}},
		{"when any holder releases, the next waiter is granted", func(f *fixture) {
			for leaves := range 3 {
				path := f.path(string(rune('a' + leaves)))
				s := f.open()
				var holds []recipes.Hold
				for range 3 {
					holds = append(holds, f.permit(s, path, 3))
				}
				first, second := f.permitWaits(f.open(), path, 3), f.permitWaits(f.open(), path, 3)
				f.must(holds[leaves].Release(f.ctx))
				h := first.must(f)
				second.blocked(f)
				f.must(h.Release(f.ctx))
				second.must(f)
			}
		}},
		{"at most n of many contenders hold at a time", func(f *fixture) {
			const permits, turns = 3, 8
			f.create(f.path("a"), "")
			var contenders []line
			for range 6 {
				contenders = append(contenders, semaphoreKind.with(f, f.open(), f.path("a"), options{Permits: permits}))
			}
			var inside, most atomic.Int32
			f.takeTurns(contenders, turns, func(recipes.Grant) {
				if n := inside.Add(1); n > most.Load() {
					most.Store(n)
				}
			}, func(recipes.Grant) { inside.Add(-1) })
			n := most.Load()
			f.failIf(n > permits || n < 2, "at most %d held at a time; want from 2 to %d", n, permits)
		}},
		{"try/a free permit is granted; without one, it is ErrContended", func(f *fixture) {
			s := f.open()
			m := f.semaphore(s, f.path("a"), 2)
			a := get(f, m.TryAcquire)
			get(f, m.TryAcquire)
			f.is(errOf(m.TryAcquire(f.ctx)), recipes.ErrContended)
			f.awaitChildren(f.path("a"), 2)
			f.must(a.Release(f.ctx))
			get(f, m.TryAcquire)
		}},
		{"the number of permits is stored at the path, also at one that exists without data", func(f *fixture) {
			f.create(f.path("b"), "")
			for _, path := range []string{f.path("a"), f.path("b")} {
				f.permit(f.open(), path, 7)
				data, _ := f.read(path)
				f.failIf(data != "permits=7", "the path has data %q", data)
			}
		}},
		{"another number of permits is ErrMismatch, and the contender leaves", func(f *fixture) {
			s, other := f.open(), f.open()
			for path, permits := range map[string][2]int{"a": {2, 3}, "b": {1, 2}, "c": {2, 1}} { // only a semaphore with one permit uses Handoff
				h := f.permit(s, f.path(path), permits[0])
				_, err := f.semaphore(other, f.path(path), permits[1]).Acquire(f.ctx)
				f.is(err, recipes.ErrMismatch)
				f.isNot(err, recipes.ErrContended, recipes.ErrNotHeld)
				f.awaitChildren(f.path(path), 1)
				f.held(h)
			}
		}},
		{"without contenders, another number of permits is accepted", func(f *fixture) {
			f.create(f.path("a"), "permits=5") // a persistent znode, which the server does not delete
			h := f.permit(f.open(), f.path("a"), 6)
			data, _ := f.read(f.path("a"))
			f.failIf(data != "permits=6", "the path has data %q", data)
			f.is(errOf(f.semaphore(f.open(), f.path("a"), 5).TryAcquire(f.ctx)), recipes.ErrMismatch)
			f.held(h)
		}},
		{"a path with other data is ErrMismatch", func(f *fixture) {
			f.create(f.path("a"), "other data")
			f.is(errOf(f.semaphore(f.open(), f.path("a"), 3).Acquire(f.ctx)), recipes.ErrMismatch)
			f.awaitChildren(f.path("a"), 0)
			data, _ := f.read(f.path("a"))
			f.failIf(data != "other data", "the path has data %q", data)
		}},
		{"less than one permit is ErrInvalid", func(f *fixture) {
			s := f.open()
			for _, n := range []int{0, -1} {
				f.is(errOf(s.Semaphore(f.path("a"), recipes.SemaphoreConfig{Permits: n})), recipes.ErrInvalid)
			}
		}},
	})
}

func (f *fixture) semaphore(s recipes.Recipes, path string, permits int) recipes.Semaphore {
	f.Helper()
	return must.Get(s.Semaphore(path, recipes.SemaphoreConfig{Permits: permits}))(f)
}

func (f *fixture) permit(s recipes.Recipes, path string, permits int) recipes.Hold {
	f.Helper()
	return get(f, f.semaphore(s, path, permits).Acquire)
}

func (f *fixture) permitWaits(s recipes.Recipes, path string, permits int) *waitingCall[recipes.Hold] {
	f.Helper()
	return waits(f, func(joined func(recipes.Place)) func(context.Context) (recipes.Hold, error) {
		m := must.Get(s.Semaphore(path, recipes.SemaphoreConfig{Permits: permits, Joined: joined}))(f)
		return m.Acquire
	})
}
