package recipestest

import (
	"context"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// entersUnanswered starts to enter the wait queue in a session that receives no replies. It
// returns when the server has created the contender's znode.
func (k kind) entersUnanswered(f *fixture, ctx context.Context, s recipes.Client) *pending[grant] {
	f.Helper()
	f.create(f.path("a"), "")
	if !f.since35() { // the refusal of the session's first create2 must not be held
		f.must(k.granted(f, s, f.path("b")).Release(f.ctx))
	}
	f.relay(s).HoldReplies()
	l := k.at(f, s, f.path("a"))
	call := start(f, func() (grant, error) { return l.Enter(ctx) })
	f.awaitChildren(f.path("a"), 1)
	return call
}

// creationReplyLost tests why the znode carries a GUID: the contender finds its znode again by it.
func creationReplyLost(f *fixture, k kind) {
	s := f.open()
	call := k.entersUnanswered(f, f.ctx, s)
	f.lose(s)
	g := call.must(f)
	if names := f.children(f.path("a")); len(names) != 1 || f.path("a", names[0]) != g.Znode() {
		f.Errorf("granted as %s; the wait queue is %v", g.Znode(), names)
	}
	f.must(g.Release(f.ctx))
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
	f.lose(s)
	call.must(f)
	if names := f.children(f.path("a")); len(names) != 1 {
		f.Errorf("the wait queue is %v; want one contender", names)
	}
}

func creationCancelled(f *fixture, k kind) {
	s := f.open()
	ctx, cancel := context.WithCancel(f.ctx)
	defer cancel()
	call := k.entersUnanswered(f, ctx, s)
	cancel()
	f.is(call.failure(f), context.Canceled)
	f.lose(s)
	f.awaitChildren(f.path("a"), 0)
	f.must(s.Err())
}
