package recipestest

import (
	"context"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/recipes"
)

func barrierTests() []test {
	return []test{
		{"a bad path is ErrInvalid", func(f *fixture) {
			for _, path := range []string{"", "a", "/", "/a/"} {
				f.is(errOf(f.open().Barrier(path)), recipes.ErrInvalid)
			}
			b := f.barrier(f.open(), "/a")
			f.failIf(b.Path() != "/a", "path %q", b.Path())
		}},
		{"the barrier is set while its znode exists, which outlives the session; without it, Wait returns at once", func(f *fixture) {
			b := f.barrier(f.open(), f.path("deep", "b"))
			f.placed(b, false)
			f.must(b.Set(f.ctx, []byte("why")))
			f.placed(b, true)
			data, stat := f.read(b.Path())
			f.failIf(data != "why" || stat.EphemeralOwner != 0, "data %q, %+v", data, stat)
			f.must(b.Remove(f.ctx))
			f.placed(b, false)
			f.must(b.Wait(f.ctx))
			f.create(b.Path(), "by another client")
			f.placed(b, true)
			f.must(b.Remove(f.ctx))
			f.is(b.Set(f.ended(), nil), context.Canceled)
			f.placed(b, false)
		}},
		{"a second Set changes nothing, and a second Remove succeeds", func(f *fixture) {
			b := f.barrier(f.open(), f.path("b"))
			f.must(b.Remove(f.ctx))
			f.must(b.Set(f.ctx, []byte("first")))
			f.must(b.Set(f.ctx, []byte("second")))
			data, _ := f.read(b.Path())
			f.failIf(data != "first", "data %q", data)
			f.must(b.Remove(f.ctx))
			f.must(b.Remove(f.ctx))
		}},
		{"wait/all waiters pass when the barrier is removed, and wait when it is set again", func(f *fixture) {
			b := f.barrier(f.open(), f.path("b"))
			s := f.open()
			for range 2 {
				f.must(b.Set(f.ctx, nil))
				waiters := []*pending[struct{}]{
					f.waitsAt(f.ctx, s, f.path("b")), f.waitsAt(f.ctx, s, f.path("b")), f.waitsAt(f.ctx, f.open(), f.path("b")),
				}
				f.must(b.Remove(f.ctx))
				for _, w := range waiters {
					w.must(f)
				}
			}
		}},
		{"wait/a change of the barrier's data lets no waiter pass", func(f *fixture) {
			b := f.barrier(f.open(), f.path("b"))
			f.must(b.Set(f.ctx, nil))
			s := f.open()
			w := f.waitsAt(f.ctx, s, f.path("b"))
			events := f.stats(s).WatchEvents
			must.Get(f.outside.Set(b.Path(), []byte("more"), -1))(f)
			for f.stats(s).WatchEvents == events && f.ctx.Err() == nil {
			}
			w.blocked(f)
			f.must(b.Remove(f.ctx))
			w.must(f)
		}},
		{"wait/a removal during a lost connection is not missed", func(f *fixture) {
			b := f.barrier(f.open(), f.path("b"))
			f.must(b.Set(f.ctx, nil))
			s := f.open()
			w := f.waitsAt(f.ctx, s, f.path("b"))
			f.sever(s)
			f.must(b.Remove(f.ctx))
			w.blocked(f)
			f.reconnect(s)
			w.must(f)
		}},
		{"wait/the end of the context ends the wait", func(f *fixture) {
			b := f.barrier(f.open(), f.path("b"))
			f.must(b.Set(f.ctx, nil))
			ctx, cancel := context.WithCancel(f.ctx)
			defer cancel()
			s := f.open()
			w := f.waitsAt(ctx, s, f.path("b"))
			cancel()
			f.is(w.failure(f), context.Canceled)
			f.is(f.barrier(s, f.path("b")).Wait(f.briefly()), context.DeadlineExceeded)
			f.is(f.barrier(s, f.path("none")).Wait(f.ended()), context.Canceled)
		}},
		{"wait/the loss of the session ends the wait", func(f *fixture) {
			b := f.barrier(f.open(), f.path("b"))
			f.must(b.Set(f.ctx, nil))
			s := f.open()
			w := f.waitsAt(f.ctx, s, f.path("b"))
			f.expire(s)
			f.is(w.failure(f), recipes.ErrSessionLost, recipes.ErrExpired)
			f.is(f.barrier(s, f.path("b")).Set(f.ctx, nil), recipes.ErrExpired)
			f.is(f.barrier(s, f.path("b")).Remove(f.ctx), recipes.ErrExpired)
		}},
		{"set and remove/both wait for the connection", func(f *fixture) {
			s := f.open()
			b := f.barrier(s, f.path("b"))
			f.sever(s)
			p := startErr(f, func() error { return b.Set(f.ctx, nil) })
			p.blocked(f)
			f.is(b.Remove(f.briefly()), context.DeadlineExceeded)
			f.reconnect(s)
			p.must(f)
			f.placed(b, true)
		}},
	}
}

func (f *fixture) barrier(s recipes.Recipes, path string) recipes.Barrier {
	f.Helper()
	return must.Get(s.Barrier(path))(f)
}

func (f *fixture) placed(b recipes.Barrier, want bool) {
	f.Helper()
	got := get(f, b.IsSet)
	f.failIf(got != want || f.exists(b.Path()) != want, "set: %v; want %v", got, want)
}

// waitsAt waits at a barrier in the background. It returns when the server has answered the
// waiter's first read.
func (f *fixture) waitsAt(ctx context.Context, s recipes.Client, path string) *pending[struct{}] {
	f.Helper()
	reads := f.stats(s).ByKind["getData"]
	p := startErr(f, func() error { return f.barrier(s, path).Wait(ctx) })
	for f.stats(s).ByKind["getData"] == reads {
		if f.ctx.Err() != nil {
			f.Fatal("the waiter does not read")
		}
	}
	// The server answers in the order of the requests.
	get(f, f.barrier(s, path).IsSet)
	p.blocked(f)
	return p
}
