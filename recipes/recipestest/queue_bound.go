package recipestest

import (
	"context"
	"fmt"

	"github.com/zkrecipes/zkrecipes/recipes"
)

func boundedWaits(f *fixture, form queueForm) {
	cfg := recipes.QueueConfig{Capacity: 2}
	full, taker := form.end(f, f.open(), f.path("a"), cfg), form.end(f, f.open(), f.path("a"), cfg)
	full.put("1", "2")
	before := listings(f.stats(full.s))
	call := startErr(f, func() error { _, err := full.many(f.ctx, []byte("3")); return err })
	f.reach(full.s, func(c recipes.Stats) bool { return listings(c) >= before+2 })
	call.blocked(f)
	form.putUntilEnd(f, f.path("a"), cfg)
	taker.takes("1")
	call.must(f)
	taker.takes("2", "3")
	taker.holds(0)
}

// putUntilEnd puts into a full queue until its context ends, and then closes the session. A plugin
// can notice the end of a context late; after the close, no put is pending.
func (form queueForm) putUntilEnd(f *fixture, path string, cfg recipes.QueueConfig) {
	f.Helper()
	s := f.open()
	f.is(errOf(form.end(f, s, path, cfg).many(f.briefly(), []byte("never"))), context.DeadlineExceeded)
	f.must(s.Close(f.ctx))
}

// boundedCancelled cancels a put that waits for room. The error says that nothing was put.
func boundedCancelled(f *fixture, form queueForm) {
	cfg := recipes.QueueConfig{Capacity: 1}
	full, taker := form.end(f, f.open(), f.path("a"), cfg), form.end(f, f.open(), f.path("a"), cfg)
	full.put("1")
	before := listings(f.stats(full.s))
	ctx, cancel := context.WithCancel(f.ctx)
	defer cancel()
	call := startErr(f, func() error { _, err := full.many(ctx, []byte("never")); return err })
	f.reach(full.s, func(c recipes.Stats) bool { return listings(c) >= before+2 })
	cancel()
	err := call.failure(f)
	f.is(err, context.Canceled)
	f.isNot(err, recipes.ErrUnknownOutcome)
	taker.takes("1")
	full.put("2") // a cancelled element that was put would be ahead of it
	taker.takes("2")
	taker.holds(0)
}

func boundedExact(f *fixture, form queueForm) {
	const capacity, each, producers = 3, 4, 4
	cfg := recipes.QueueConfig{Capacity: capacity}
	var calls []*pending[struct{}]
	for i := range producers {
		e := form.end(f, f.open(), f.path("a"), cfg)
		calls = append(calls, startErr(f, func() error {
			for j := range each {
				if _, err := e.many(f.ctx, fmt.Appendf(nil, "%d-%d", i, j)); err != nil {
					return err
				}
			}
			return nil
		}))
	}
	taker := form.end(f, f.open(), f.path("a"), cfg)
	seen := map[string]bool{}
	for range each * producers {
		if n, err := taker.Len(f.ctx); err != nil || n > capacity {
			f.Errorf("length %d, %v; the capacity is %d", n, err, capacity)
		}
		got := get(f, taker.Take)
		seen[string(got.Data)] = true
	}
	for _, c := range calls {
		c.must(f)
	}
	if len(seen) != each*producers {
		f.Errorf("%d different elements; want %d", len(seen), each*producers)
	}
}

func boundedClaims(f *fixture, form queueForm) {
	cfg := recipes.QueueConfig{Capacity: 1}
	e := form.end(f, f.open(), f.path("a"), cfg)
	e.put("1")
	d := e.receives("1", 1)
	form.putUntilEnd(f, f.path("a"), cfg)
	f.must(d.Ack(f.ctx))
	e.put("2")
}
