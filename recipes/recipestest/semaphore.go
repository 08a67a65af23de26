package recipestest

import (
	"context"
	"sync/atomic"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// semaphoreTests are what only a semaphore promises.
func semaphoreTests() []test {
	return []test{
		{"n are granted, and no more", permitsBound},
		{"when any holder leaves the next is granted", anyHolderLeaves},
		{"a waiter is granted when others ahead of it have given up", waitersGiveUp},
		{"of many at most n hold at a time", permitsUnderLoad},
		{"try/with a free permit it is granted, without one it is refused", tryPermit},
		{"the path says the number of permits", permitsAtPath},
		{"another number of permits is ErrMismatch, and the line is left", permitsMismatch},
		{"another number of permits is free when no contender is in line", permitsChanged},
		{"a path that holds something else is ErrMismatch", permitsForeign},
		{"an empty path takes the number of the first", permitsExistingPath},
		{"less than one permit is ErrInvalid", permitsInvalid},
	}
}

func (f *fixture) semaphore(s recipes.Recipes, path string, permits int) recipes.Semaphore {
	f.Helper()
	m, err := s.Semaphore(path, recipes.SemaphoreConfig{Permits: permits})
	f.must(err)
	return m
}

func (f *fixture) permit(s recipes.Recipes, path string, permits int) recipes.Hold {
	f.Helper()
	h, err := f.semaphore(s, path, permits).Acquire(f.ctx)
	f.must(err)
	return h
}

type permitWaiter struct {
	*pending[recipes.Hold]
	place  recipes.Place
	cancel context.CancelFunc
}

func (f *fixture) permitWaits(s recipes.Recipes, path string, permits int) *permitWaiter {
	f.Helper()
	joined := make(chan recipes.Place, 1)
	m, err := s.Semaphore(path, recipes.SemaphoreConfig{Permits: permits, Joined: func(p recipes.Place) { joined <- p }})
	f.must(err)
	ctx, cancel := context.WithCancel(f.ctx)
	w := &permitWaiter{cancel: cancel}
	w.pending = start(f, func() (recipes.Hold, error) { return m.Acquire(ctx) })
	f.Cleanup(cancel)
	w.place = receive(f, joined, "joining the line")
	return w
}

func permitsBound(f *fixture) {
	s := f.open()
	var holds []recipes.Hold
	for range 3 {
		holds = append(holds, f.permit(f.open(), f.path("a"), 3))
	}
	w := f.permitWaits(s, f.path("a"), 3)
	if w.place.Position != 3 {
		f.Errorf("joined at %d; want 3", w.place.Position)
	}
	for _, h := range holds {
		f.held(h)
		f.must(h.Write(f.ctx))
	}
	w.blocked(f)
	f.must(holds[2].Release(f.ctx))
	f.held(w.value1(f))
}

func anyHolderLeaves(f *fixture) {
	for leaves := range 3 {
		path := f.path(string(rune('a' + leaves)))
		s := f.open()
		var holds []recipes.Hold
		for range 3 {
			holds = append(holds, f.permit(s, path, 3))
		}
		first, second := f.permitWaits(f.open(), path, 3), f.permitWaits(f.open(), path, 3)
		f.must(holds[leaves].Release(f.ctx))
		h := first.value1(f)
		second.blocked(f)
		f.must(h.Release(f.ctx))
		second.value1(f)
	}
}

func waitersGiveUp(f *fixture) {
	s := f.open()
	a, b := f.permit(s, f.path("a"), 2), f.permit(s, f.path("a"), 2)
	first, second, third := f.permitWaits(s, f.path("a"), 2), f.permitWaits(s, f.path("a"), 2), f.permitWaits(f.open(), f.path("a"), 2)
	f.must(b.Release(f.ctx))
	f.must(first.value1(f).Release(f.ctx))
	f.held(a)
	g := second.value1(f)
	third.blocked(f)
	f.must(a.Release(f.ctx))
	third.value1(f)
	f.held(g)
}

func permitsUnderLoad(f *fixture) {
	const permits, contenders, turns = 3, 6, 8
	f.create(f.path("a"), "")
	var inside, most atomic.Int32
	var all []*pending[struct{}]
	for range contenders {
		m := f.semaphore(f.open(), f.path("a"), permits)
		all = append(all, startErr(f, func() error {
			for range turns {
				h, err := m.Acquire(f.ctx)
				if err != nil {
					return err
				}
				if n := inside.Add(1); n > most.Load() {
					most.Store(n)
				}
				err = h.Write(f.ctx)
				inside.Add(-1)
				if err != nil {
					return err
				}
				if err := h.Release(f.ctx); err != nil {
					return err
				}
			}
			return nil
		}))
	}
	for _, c := range all {
		c.value1(f)
	}
	if n := most.Load(); n > permits || n < 2 {
		f.Errorf("%d held at a time; want some, at most %d", n, permits)
	}
	f.awaitChildren(f.path("a"), 0)
}

func tryPermit(f *fixture) {
	s := f.open()
	m := f.semaphore(s, f.path("a"), 2)
	a, err := m.TryAcquire(f.ctx)
	f.must(err)
	_, err = m.TryAcquire(f.ctx)
	f.must(err)
	_, err = m.TryAcquire(f.ctx)
	f.is(err, recipes.ErrContended)
	f.awaitChildren(f.path("a"), 2)
	f.must(a.Release(f.ctx))
	_, err = m.TryAcquire(f.ctx)
	f.must(err)
}

func permitsAtPath(f *fixture) {
	f.permit(f.open(), f.path("a"), 7)
	if data, _ := f.read(f.path("a")); data != "permits=7" {
		f.Errorf("the path holds %q", data)
	}
}

func permitsMismatch(f *fixture) {
	s, other := f.open(), f.open()
	for path, permits := range map[string][2]int{"a": {2, 3}, "b": {1, 2}, "c": {2, 1}} { // one permit is handed on
		h := f.permit(s, f.path(path), permits[0])
		_, err := f.semaphore(other, f.path(path), permits[1]).Acquire(f.ctx)
		f.is(err, recipes.ErrMismatch)
		f.isNot(err, recipes.ErrContended, recipes.ErrNotHeld)
		f.awaitChildren(f.path(path), 1)
		f.held(h)
	}
}

func permitsChanged(f *fixture) {
	f.create(f.path("a"), "permits=5") // by a client; ZooKeeper does not delete such a znode
	h := f.permit(f.open(), f.path("a"), 6)
	if data, _ := f.read(f.path("a")); data != "permits=6" {
		f.Errorf("the path holds %q", data)
	}
	_, err := f.semaphore(f.open(), f.path("a"), 5).TryAcquire(f.ctx)
	f.is(err, recipes.ErrMismatch)
	f.held(h)
}

func permitsForeign(f *fixture) {
	f.create(f.path("a"), "somebody's")
	_, err := f.semaphore(f.open(), f.path("a"), 3).Acquire(f.ctx)
	f.is(err, recipes.ErrMismatch)
	f.awaitChildren(f.path("a"), 0)
	if data, _ := f.read(f.path("a")); data != "somebody's" {
		f.Errorf("the path holds %q", data)
	}
}

func permitsExistingPath(f *fixture) {
	f.create(f.path("a"), "")
	h := f.permit(f.open(), f.path("a"), 2)
	_, err := f.semaphore(f.open(), f.path("a"), 3).TryAcquire(f.ctx)
	f.is(err, recipes.ErrMismatch)
	f.must(h.Release(f.ctx))
}

func permitsInvalid(f *fixture) {
	s := f.open()
	for _, n := range []int{0, -1} {
		_, err := s.Semaphore(f.path("a"), recipes.SemaphoreConfig{Permits: n})
		f.is(err, recipes.ErrInvalid)
	}
}
