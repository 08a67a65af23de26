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
