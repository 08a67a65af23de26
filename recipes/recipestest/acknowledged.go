package recipestest

import (
	"context"

	"github.com/zkrecipes/zkrecipes/recipes"
)

func acknowledgedWaits(f *fixture) {
	waiting := f.open()
	e := f.election(waiting, f.path("a"))
	call := start(f, func() (recipes.Leader, error) { return e.Acknowledged(f.ctx) })
	l := f.lead(f.open(), f.path("a"))
	next := electionKind.waits(f, f.open(), f.path("a"))
	// When another observer of the session has seen the leader, Acknowledged has read it too.
	f.observes(waiting, f.path("a"), func(got recipes.Leader) bool { return got.Znode == l.Znode() })
	call.blocked(f)
	f.must(l.Resign(f.ctx))
	won := next.must(f)
	f.observes(waiting, f.path("a"), func(got recipes.Leader) bool { return got.Znode == won.Znode() })
	call.blocked(f)
	f.must(won.Grant.(recipes.Leadership).Acknowledge(f.ctx, []byte("done")))
	got := call.must(f)
	if got.Znode != won.Znode() || !got.Acknowledged || string(got.Acknowledgement) != "done" {
		f.Errorf("acknowledged by %+v; want %s", got, won.Znode())
	}
	again := get(f, e.Acknowledged)
	if again.Znode != won.Znode() {
		f.Errorf("acknowledged by %+v; want %s", again, won.Znode())
	}
}

func acknowledgedByThisLeader(f *fixture) {
	old := f.lead(f.open(), f.path("a"))
	f.must(old.Resign(f.ctx))
	f.create(f.path("a"), "")
	f.create(acknowledgement(old), "left over")
	f.lead(f.open(), f.path("a"))
	e := f.election(f.open(), f.path("a"))
	got := get(f, e.Leader)
	if got.Acknowledged {
		f.Errorf("leader %+v; want it not to have acknowledged", got)
	}
	f.is(errOf(e.Acknowledged(f.briefly())), context.DeadlineExceeded)
}

func acknowledgedLost(f *fixture) {
	s := f.open()
	e := f.election(s, f.path("a"))
	call := start(f, func() (recipes.Leader, error) { return e.Acknowledged(f.ctx) })
	f.must(s.Close(f.ctx))
	f.is(call.failure(f), recipes.ErrSessionLost, recipes.ErrClosed)
}

func acknowledgedReconnects(f *fixture) {
	l := f.lead(f.open(), f.path("a"))
	s := f.open()
	e := f.election(s, f.path("a"))
	call := start(f, func() (recipes.Leader, error) { return e.Acknowledged(f.ctx) })
	f.reach(s, func(c recipes.Stats) bool { return c.ByKind["exists"] > 0 })
	f.sever(s)
	f.must(l.Acknowledge(f.ctx, nil))
	call.blocked(f)
	f.relay(s).Restore()
	if got := call.must(f); got.Znode != l.Znode() {
		f.Errorf("acknowledged by %+v; want %s", got, l.Znode())
	}
}
