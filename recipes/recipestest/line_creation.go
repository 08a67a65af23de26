package recipestest

import (
	"context"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// creationReplyLost is the failure that the GUID is there for.
func creationReplyLost(f *fixture, k kind) {
	f.create(f.path("a"), "")
	s := f.open()
	f.relay(s).HoldReplies()
	l := k.at(f, s, f.path("a"))
	call := start(f, func() (grant, error) { return l.Enter(f.ctx) })
	f.awaitChildren(f.path("a"), 1) // the server has created it
	f.relay(s).Drop()               // and its answer is lost
	f.relay(s).Restore()
	g := call.value1(f)
	if names := f.children(f.path("a")); len(names) != 1 || f.path("a", names[0]) != g.Znode() {
		f.Errorf("granted as %s; the line is %v", g.Znode(), names)
	}
	f.must(g.GiveBack(f.ctx))
	f.awaitChildren(f.path("a"), 0)
}

func creationLost(f *fixture, k kind) {
	f.create(f.path("a"), "")
	s := f.open()
	f.relay(s).Hold()
	before := f.stats(s).Writes
	l := k.at(f, s, f.path("a"))
	call := start(f, func() (grant, error) { return l.Enter(f.ctx) })
	f.reach(s, func(c recipes.Stats) bool { return c.Writes > before })
	f.relay(s).Drop()
	f.relay(s).Restore()
	call.value1(f)
	if names := f.children(f.path("a")); len(names) != 1 {
		f.Errorf("the line is %v; want one contender", names)
	}
}

func creationCancelled(f *fixture, k kind) {
	f.create(f.path("a"), "")
	s := f.open()
	f.relay(s).HoldReplies()
	l := k.at(f, s, f.path("a"))
	ctx, cancel := context.WithCancel(f.ctx)
	defer cancel()
	call := start(f, func() (grant, error) { return l.Enter(ctx) })
	f.awaitChildren(f.path("a"), 1)
	cancel()
	_, err := call.result(f)
	f.is(err, context.Canceled)
	f.relay(s).Drop()
	f.relay(s).Restore()
	f.awaitChildren(f.path("a"), 0)
	if err := s.Err(); err != nil {
		f.Errorf("the session is lost: %v", err)
	}
}
