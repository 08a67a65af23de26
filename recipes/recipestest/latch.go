package recipestest

import (
	"context"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/recipes"
)

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
