package recipestest

import (
	"context"
	"math"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/recipes"
)

func counterTests() []test {
	return []test{
		{"a bad path is ErrInvalid", func(f *fixture) {
			for _, path := range []string{"", "a", "/"} {
				f.is(errOf(f.open().Counter(path, recipes.CounterConfig{})), recipes.ErrInvalid)
			}
			c := f.counter(f.open(), "/a")
			f.failIf(c.Path() != "/a", "path %q", c.Path())
		}},
		{"a counter begins at 0, Add returns the sum, and the znode outlives the session", func(f *fixture) {
			c := f.counter(f.open(), f.path("deep", "n"))
			f.counts(c, 0)
			f.failIf(f.exists(f.path("deep")), "Get created the counter")
			f.adds(c, 5, 5)
			f.adds(f.counter(f.open(), f.path("deep", "n")), -7, -2)
			f.adds(c, 0, -2)
			f.counts(f.counter(f.open(), f.path("deep", "n")), -2)
			data, stat := f.read(f.path("deep", "n"))
			f.failIf(data != "-2" || stat.EphemeralOwner != 0, "the znode has %q, %+v", data, stat)
		}},
		{"each of many concurrent additions is counted once", func(f *fixture) {
			const sessions, each = 4, 10
			var all []*pending[struct{}]
			for range sessions {
				c := f.counter(f.open(), f.path("n"))
				all = append(all, startErr(f, func() error {
					for range each {
						if _, err := c.Add(f.ctx, 1); err != nil {
							return err
						}
					}
					return nil
				}))
			}
			for _, p := range all {
				p.must(f)
			}
			f.counts(f.counter(f.open(), f.path("n")), sessions*each)
		}},
		{"a sum beyond 64 bits is ErrOverflow", func(f *fixture) {
			c := f.counter(f.open(), f.path("n"))
			f.adds(c, math.MaxInt64, math.MaxInt64)
			_, err := c.Add(f.ctx, 1)
			f.is(err, recipes.ErrOverflow)
			f.isNot(err, recipes.ErrUnknownOutcome)
			f.adds(c, math.MinInt64, -1)
			f.is(errOf(c.Add(f.ctx, math.MinInt64)), recipes.ErrOverflow)
			f.counts(c, -1)
		}},
		{"data that is not a number is ErrInvalid", func(f *fixture) {
			f.create(f.path("n"), "many")
			c := f.counter(f.open(), f.path("n"))
			f.is(errOf(c.Get(f.ctx)), recipes.ErrInvalid)
			f.is(errOf(c.Add(f.ctx, 1)), recipes.ErrInvalid)
			f.create(f.path("m"), "")
			f.adds(f.counter(f.open(), f.path("m")), 1, 1)
		}},
		{"a call waits for the connection, and fails on a closed session", func(f *fixture) {
			s := f.open()
			c := f.counter(s, f.path("n"))
			f.adds(c, 1, 1)
			n := suspended(f, s, func() (int64, error) { return c.Add(f.ctx, 1) })
			f.failIf(n != 2, "%d; want 2", n)
			f.must(s.Close(f.ctx))
			f.is(errOf(c.Add(f.ctx, 1)), recipes.ErrClosed)
		}},
		{"a context that has ended changes nothing", func(f *fixture) {
			c := f.counter(f.open(), f.path("n"))
			f.is(errOf(c.Add(f.ended(), 1)), context.Canceled)
			f.is(errOf(c.Get(f.ended())), context.Canceled)
			f.counts(c, 0)
		}},
	}
}

func (f *fixture) counter(s recipes.Recipes, path string) recipes.Counter {
	f.Helper()
	return must.Get(s.Counter(path, recipes.CounterConfig{}))(f)
}

func (f *fixture) counts(c recipes.Counter, want int64) {
	f.Helper()
	got := get(f, c.Get)
	f.failIf(got != want, "%d; want %d", got, want)
}

func (f *fixture) adds(c recipes.Counter, delta, want int64) {
	f.Helper()
	got := must.Get(c.Add(f.ctx, delta))(f)
	f.failIf(got != want, "adding %d gives %d; want %d", delta, got, want)
}

func latchTests() []test {
	return []test{
		{"a bad path or count is ErrInvalid", func(f *fixture) {
			s := f.open()
			f.is(errOf(s.Latch("/a", recipes.LatchConfig{})), recipes.ErrInvalid)
			f.is(errOf(s.Latch("a", recipes.LatchConfig{Count: 1})), recipes.ErrInvalid)
			l := f.latch(s, "/a", 1)
			f.failIf(l.Path() != "/a", "path %q", l.Path())
		}},
		{"a latch opens when the count reaches 0", func(f *fixture) {
			l := f.latch(f.open(), f.path("l"), 2)
			n, err := l.Count(f.ctx)
			f.failIf(n != 2 || err != nil, "%d, %v", n, err)
			w := startErr(f, func() error { return f.latch(f.open(), f.path("l"), 2).Wait(f.ctx) })
			f.countsDown(l, 1)
			w.blocked(f)
			f.failIf(f.exists(f.path("l", "open")), "it is open too early")
			f.countsDown(f.latch(f.open(), f.path("l"), 2), 0)
			w.must(f)
			data, _ := f.read(f.path("l", "remaining"))
			f.failIf(data != "0", "%q remain", data)
		}},
		{"an open latch stays open, and its count stays 0", func(f *fixture) {
			s := f.open()
			f.countsDown(f.latch(s, f.path("l"), 1), 0)
			f.countsDown(f.latch(f.open(), f.path("l"), 1), 0)
			f.must(s.Close(f.ctx))
			f.must(f.latch(f.open(), f.path("l"), 1).Wait(f.ctx))
			// A latch that an operator has opened can still be counted down.
			f.create(f.path("m", "open"), "")
			f.must(f.latch(f.open(), f.path("m"), 1).Wait(f.ctx))
			f.countsDown(f.latch(f.open(), f.path("m"), 1), 0)
		}},
		{"many sessions count down at the same time", func(f *fixture) {
			const n = 8
			var all []*pending[int64]
			for range n {
				l := f.latch(f.open(), f.path("l"), n)
				all = append(all, start(f, func() (int64, error) { return l.CountDown(f.ctx) }))
			}
			seen := map[int64]bool{}
			for _, p := range all {
				seen[p.must(f)] = true
			}
			f.failIf(len(seen) != n || !seen[0] || !seen[n-1], "the counts were %v", seen)
			f.must(f.latch(f.open(), f.path("l"), n).Wait(f.ctx))
		}},
		{"an opening during a lost connection is not missed", func(f *fixture) {
			s := f.open()
			w := startErr(f, func() error { return f.latch(s, f.path("l"), 1).Wait(f.ctx) })
			f.sever(s)
			f.countsDown(f.latch(f.open(), f.path("l"), 1), 0)
			w.blocked(f)
			f.reconnect(s)
			w.must(f)
		}},
		{"the end of the context and the loss of the session end a wait", func(f *fixture) {
			s := f.open()
			l := f.latch(s, f.path("l"), 1)
			f.is(l.Wait(f.briefly()), context.DeadlineExceeded)
			f.is(errOf(l.CountDown(f.ended())), context.Canceled)
			w := startErr(f, func() error { return l.Wait(f.ctx) })
			f.expire(s)
			f.is(w.failure(f), recipes.ErrExpired)
		}},
	}
}

func (f *fixture) latch(s recipes.Recipes, path string, count int64) recipes.Latch {
	f.Helper()
	return must.Get(s.Latch(path, recipes.LatchConfig{Count: count}))(f)
}

func (f *fixture) countsDown(l recipes.Latch, want int64) {
	f.Helper()
	got := get(f, l.CountDown)
	f.failIf(got != want, "%d remain; want %d", got, want)
	got, err := l.Count(f.ctx)
	f.failIf(err != nil || got != want, "%d remain, %v; want %d", got, err, want)
}
