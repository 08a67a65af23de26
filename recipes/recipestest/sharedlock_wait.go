package recipestest

import (
	"context"

	"github.com/zkrecipes/zkrecipes/recipes"
)

func (f *fixture) sharedWaits(s recipes.Recipes, path string, mode recipes.Mode, o ...func(*recipes.SharedLockConfig)) *waiter[recipes.SharedHold] {
	f.Helper()
	return waits(f, func(joined func(recipes.Place)) func(context.Context) (recipes.SharedHold, error) {
		l := f.shared(s, path, append(o, func(c *recipes.SharedLockConfig) { c.Joined = joined })...)
		if mode == recipes.Reading {
			return l.AcquireRead
		}
		return l.AcquireWrite
	})
}

func writerLeaves(f *fixture) {
	s := f.open()
	h := f.writes(s, f.path("a"))
	var readers []*waiter[recipes.SharedHold]
	for range 4 {
		readers = append(readers, f.sharedWaits(f.open(), f.path("a"), recipes.Reading))
	}
	w := f.sharedWaits(f.open(), f.path("a"), recipes.Writing)
	late := f.sharedWaits(f.open(), f.path("a"), recipes.Reading)
	f.must(h.Release(f.ctx))
	for _, r := range readers {
		defer func(h recipes.SharedHold) { f.held(h) }(r.must(f))
	}
	w.blocked(f)
	late.blocked(f)
}

func writerGivesUp(f *fixture) {
	s := f.open()
	f.reads(s, f.path("a"))
	w := f.sharedWaits(s, f.path("a"), recipes.Writing)
	r := f.sharedWaits(f.open(), f.path("a"), recipes.Reading)
	r.blocked(f)
	w.cancel()
	f.is(w.failure(f), context.Canceled)
	r.must(f)
}
