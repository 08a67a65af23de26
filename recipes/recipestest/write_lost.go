package recipestest

import (
	"context"
	"errors"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// forbidden checks that the grant can no longer write, and that the error matches the reasons.
func (f *fixture) forbidden(g recipes.Grant, reasons ...error) {
	f.Helper()
	err := g.Write(f.ctx, recipes.Create(f.path("forbidden"), nil))
	f.is(err, append(reasons, recipes.ErrNotHeld)...)
	f.isNot(err, recipes.ErrUnknownOutcome)
	f.is(g.Write(f.ctx), append(reasons, recipes.ErrNotHeld)...)
	var refusal *recipes.WriteError
	f.failIf(errors.As(err, &refusal), "error %v is a *recipes.WriteError", err)
	f.failIf(f.exists(f.path("forbidden")), "the write was committed")
}

func writeLossTests() []kindTest {
	return []kindTest{
		{"a holder that was replaced cannot write, its successor can", func(f *fixture, k kind) {
			old := k.granted(f, f.open(), f.path("a"))
			f.remove(old.Znode())
			// The former holder has not noticed the deletion.
			g := k.granted(f, f.open(), f.path("a"))
			f.must(old.Err())
			f.must(g.Write(f.ctx, recipes.Create(f.path("x"), []byte("successor"))))
			f.is(old.Write(f.ctx, recipes.Set(f.path("x"), []byte("deposed"), recipes.AnyVersion)), recipes.ErrNotHeld)
			data, _ := f.read(f.path("x"))
			f.failIf(data != "successor", "the data is that of the %s holder", data)
			f.held(g)
		}},
		{"a write whose reply is lost is ErrUnknownOutcome, and is not repeated", func(f *fixture, k kind) {
			s := f.open()
			g := k.granted(f, s, f.path("a"))
			f.create(f.path("x"), "")
			f.must(g.Write(f.ctx)) // the first write of a grant also creates its guard
			f.relay(s).HoldReplies()
			_, _, changed, err := f.outside.GetW(f.path("x"))
			f.must(err)
			call := startErr(f, func() error {
				return g.Write(f.ctx, recipes.Set(f.path("x"), []byte("1"), recipes.AnyVersion))
			})
			select {
			case <-changed:
			case <-f.ctx.Done():
				f.Fatal("nothing was written")
			}
			f.lose(s)
			err = call.failure(f)
			f.is(err, recipes.ErrUnknownOutcome)
			f.isNot(err, recipes.ErrNotHeld)
			f.must(g.Write(f.ctx)) // the grant is still held on the next connection
			_, stat := f.read(f.path("x"))
			f.failIf(stat.Version != 1, "written %d times; want once", stat.Version)
		}},
		{"a write whose request is lost is ErrUnknownOutcome, and is not repeated", func(f *fixture, k kind) {
			s := f.open()
			g := k.granted(f, s, f.path("a"))
			f.create(f.path("x"), "")
			f.must(g.Write(f.ctx)) // the first write of a grant also creates its guard
			before := f.stats(s).Writes
			f.relay(s).Hold()
			call := startErr(f, func() error {
				return g.Write(f.ctx, recipes.Set(f.path("x"), []byte("1"), recipes.AnyVersion))
			})
			f.reach(s, func(c recipes.Stats) bool { return c.Writes == before+1 })
			f.lose(s)
			f.is(call.failure(f), recipes.ErrUnknownOutcome)
			f.must(g.Write(f.ctx))
			_, stat := f.read(f.path("x"))
			f.failIf(stat.Version != 0, "written %d times; want not at all", stat.Version)
		}},
		{"a write waits for the connection", func(f *fixture, k kind) {
			s := f.open()
			g := k.granted(f, s, f.path("a"))
			f.sever(s)
			err := g.Write(f.briefly(), recipes.Create(f.path("x"), nil))
			f.is(err, context.DeadlineExceeded)
			f.isNot(err, recipes.ErrNotHeld)
			f.unsent(err)
			call := startErr(f, func() error { return g.Write(f.ctx, recipes.Create(f.path("x"), nil)) })
			f.relay(s).Restore()
			call.must(f)
			f.failIf(!f.exists(f.path("x")), "x does not exist")
		}},
	}
}
