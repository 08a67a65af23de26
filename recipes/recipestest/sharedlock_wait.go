package recipestest

import (
	"context"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// sharedWaiter is a contender that has joined and waits.
type sharedWaiter struct {
	*pending[recipes.SharedHold]
	place  recipes.Place
	cancel context.CancelFunc
}

func (f *fixture) sharedWaits(s recipes.Recipes, path string, mode recipes.Mode) *sharedWaiter {
	f.Helper()
	joined := make(chan recipes.Place, 1)
	l := f.shared(s, path, func(c *recipes.SharedLockConfig) { c.Joined = func(p recipes.Place) { joined <- p } })
	ctx, cancel := context.WithCancel(f.ctx)
	w := &sharedWaiter{cancel: cancel}
	w.pending = start(f, func() (recipes.SharedHold, error) {
		if mode == recipes.Reading {
			return l.AcquireRead(ctx)
		}
		return l.AcquireWrite(ctx)
	})
	f.Cleanup(cancel)
	w.place = receive(f, joined, "joining the line")
	return w
}

func readerBehindWriter(f *fixture) {
	s := f.open()
	a := f.reads(s, f.path("a"))
	w := f.sharedWaits(s, f.path("a"), recipes.Writing)
	r := f.sharedWaits(s, f.path("a"), recipes.Reading)
	f.must(a.Release(f.ctx))
	h := w.value1(f)
	r.blocked(f)
	f.must(h.Release(f.ctx))
	r.value1(f)
}

func writerLeaves(f *fixture) {
	s := f.open()
	h := f.writes(s, f.path("a"))
	var readers []*sharedWaiter
	for range 4 {
		readers = append(readers, f.sharedWaits(f.open(), f.path("a"), recipes.Reading))
	}
	w := f.sharedWaits(f.open(), f.path("a"), recipes.Writing)
	late := f.sharedWaits(f.open(), f.path("a"), recipes.Reading)
	f.must(h.Release(f.ctx))
	for _, r := range readers {
		defer func(h recipes.SharedHold) { f.held(h) }(r.value1(f))
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
	_, err := w.result(f)
	f.is(err, context.Canceled)
	r.value1(f)
}

func readerLeaves(f *fixture) {
	s := f.open()
	a, b, c := f.reads(s, f.path("a")), f.reads(s, f.path("a")), f.reads(s, f.path("a"))
	w := f.sharedWaits(f.open(), f.path("a"), recipes.Writing)
	f.must(c.Release(f.ctx)) // the one it watches
	f.must(a.Release(f.ctx))
	w.blocked(f)
	f.must(b.Release(f.ctx))
	w.value1(f)
}
