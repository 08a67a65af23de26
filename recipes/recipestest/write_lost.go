package recipestest

import (
	"context"
	"errors"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// forbidden checks that the grant writes nothing any more, for these reasons.
func (f *fixture) forbidden(g recipes.Grant, reasons ...error) {
	f.Helper()
	err := g.Write(f.ctx, recipes.Create(f.path("forbidden"), nil))
	f.is(err, append(reasons, recipes.ErrNotHeld)...)
	f.isNot(err, recipes.ErrUnknownOutcome)
	f.is(g.Write(f.ctx), append(reasons, recipes.ErrNotHeld)...)
	var refusal *recipes.WriteError
	if errors.As(err, &refusal) {
		f.Errorf("error %v blames an operation", err)
	}
	if f.exists(f.path("forbidden")) {
		f.Error("it was written")
	}
}

func writeAfterGiveBack(f *fixture, k kind) {
	g := k.granted(f, f.open(), f.path("a"))
	f.must(g.GiveBack(f.ctx))
	f.forbidden(g, recipes.ErrReleased)
}

func writeAfterRemoval(f *fixture, k kind) {
	g := k.granted(f, f.open(), f.path("a"))
	f.remove(g.Znode())
	f.forbidden(g, recipes.ErrRemoved)
}

func writeAfterExpiry(f *fixture, k kind) {
	s := f.open()
	g := k.granted(f, s, f.path("a"))
	f.expire(s)
	f.forbidden(g, recipes.ErrSessionLost, recipes.ErrExpired)
}

func writeAfterClose(f *fixture, k kind) {
	s := f.open()
	g := k.granted(f, s, f.path("a"))
	f.must(s.Close(f.ctx))
	f.forbidden(g, recipes.ErrSessionLost, recipes.ErrClosed)
}

func writeDeposed(f *fixture, k kind) {
	old := k.granted(f, f.open(), f.path("a"))
	f.remove(old.Znode())
	// The old one has not looked, and believes that it holds.
	g := k.granted(f, f.open(), f.path("a"))
	f.must(old.Err())
	f.must(g.Write(f.ctx, recipes.Create(f.path("x"), []byte("successor"))))
	f.is(old.Write(f.ctx, recipes.Set(f.path("x"), []byte("deposed"), recipes.AnyVersion)), recipes.ErrNotHeld)
	if data, _ := f.read(f.path("x")); data != "successor" {
		f.Errorf("data of the %s", data)
	}
	f.held(g)
}

func writeReplyLost(f *fixture, k kind) {
	s := f.open()
	g := k.granted(f, s, f.path("a"))
	f.create(f.path("x"), "")
	f.must(g.Write(f.ctx)) // what only the first of a grant costs
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
	f.relay(s).Drop()
	f.relay(s).Restore()
	_, err = call.result(f)
	f.is(err, recipes.ErrUnknownOutcome)
	f.isNot(err, recipes.ErrNotHeld)
	f.must(g.Write(f.ctx)) // the grant goes on in the next connection
	if _, stat := f.read(f.path("x")); stat.Version != 1 {
		f.Errorf("written %d times; want once", stat.Version)
	}
}

func writeRequestLost(f *fixture, k kind) {
	s := f.open()
	g := k.granted(f, s, f.path("a"))
	f.create(f.path("x"), "")
	f.must(g.Write(f.ctx)) // what only the first of a grant costs
	before := f.stats(s).Writes
	f.relay(s).Hold()
	call := startErr(f, func() error {
		return g.Write(f.ctx, recipes.Set(f.path("x"), []byte("1"), recipes.AnyVersion))
	})
	f.reach(s, func(c recipes.Stats) bool { return c.Writes == before+1 })
	f.relay(s).Drop()
	f.relay(s).Restore()
	_, err := call.result(f)
	f.is(err, recipes.ErrUnknownOutcome)
	f.must(g.Write(f.ctx))
	if _, stat := f.read(f.path("x")); stat.Version != 0 {
		f.Errorf("written %d times; want not at all", stat.Version)
	}
}

func writeWaits(f *fixture, k kind) {
	s := f.open()
	g := k.granted(f, s, f.path("a"))
	f.sever(s)
	err := g.Write(f.briefly(), recipes.Create(f.path("x"), nil))
	f.is(err, context.DeadlineExceeded)
	f.isNot(err, recipes.ErrNotHeld)
	if !errors.Is(err, recipes.ErrUnavailable) && !errors.Is(err, recipes.ErrUnknownOutcome) {
		f.Errorf("error %v; want that it was not sent, or that the outcome is unknown", err)
	}
	call := startErr(f, func() error { return g.Write(f.ctx, recipes.Create(f.path("x"), nil)) })
	f.relay(s).Restore()
	_, err = call.result(f)
	f.must(err)
	if !f.exists(f.path("x")) {
		f.Error("x is not there")
	}
}
