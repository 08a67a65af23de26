package recipestest

import (
	"context"

	"github.com/zkrecipes/zkrecipes/recipes"
)

func cohortWaitTests() []test {
	return []test{
		{"cancelling one who waits leaves the others", cohortCancelled},
		{"cancelling the one who enrolled keeps the place in line", cohortEnrollerCancelled},
		{"cancelling all who wait leaves the line", cohortAllCancelled},
		{"whoever comes while all others leave is granted in turn", cohortRejoins},
		{"removal of the znode while it waits is the first one's failure", cohortWaiterRemoved},
		{"the session's end ends the hold and all who wait", cohortClosed},
	}
}

func cohortCancelled(f *fixture) {
	c := f.cohortOf(3)
	for _, i := range []int{0, 1} {
		c.waiting[i].cancel()
		_, err := c.waiting[i].result(f)
		f.is(err, context.Canceled)
		f.isNot(err, recipes.ErrNotHeld, recipes.ErrSessionLost, recipes.ErrUnavailable)
	}
	f.standing(c.hold)
	c.waiting = c.waiting[2:]
	c.next(f)
	f.must(c.hold.GiveBack(f.ctx))
	f.awaitChildren(f.path("a"), 0)
}

func cohortEnrollerCancelled(f *fixture) {
	k := cohortKind(recipes.DefaultStrategy)
	g := k.granted(f, f.open(), f.path("a"))
	s := f.open()
	first, second := k.waits(f, s, f.path("a")), k.waits(f, s, f.path("a"))
	last := k.waits(f, f.open(), f.path("a"))
	first.cancel()
	_, err := first.result(f)
	f.is(err, context.Canceled)
	f.must(g.GiveBack(f.ctx))
	h := second.value1(f)
	if h.Znode() != first.place.Znode {
		f.Errorf("granted by %s; want the place that was had, %s", h.Znode(), first.place.Znode)
	}
	last.blocked(f)
	f.must(h.GiveBack(f.ctx))
	f.must(last.value1(f).GiveBack(f.ctx))
}

func cohortAllCancelled(f *fixture) {
	k := cohortKind(recipes.DefaultStrategy)
	g := k.granted(f, f.open(), f.path("a"))
	s := f.open()
	waiters := []*waiter{k.waits(f, s, f.path("a")), k.waits(f, s, f.path("a"))}
	for _, w := range waiters {
		w.cancel()
		_, err := w.result(f)
		f.is(err, context.Canceled)
	}
	f.awaitNode(waiters[0].place.Znode, false)
	f.standing(g)
}

func cohortRejoins(f *fixture) {
	k := cohortKind(recipes.DefaultStrategy)
	g := k.granted(f, f.open(), f.path("a"))
	s := f.open()
	for range 5 {
		k.waits(f, s, f.path("a")).cancel()
	}
	w := k.waits(f, s, f.path("a"))
	f.must(g.GiveBack(f.ctx))
	f.must(w.value1(f).GiveBack(f.ctx))
	f.awaitChildren(f.path("a"), 0)
}

func cohortWaiterRemoved(f *fixture) {
	k := cohortKind(recipes.Predecessor)
	g := k.granted(f, f.open(), f.path("a"))
	s := f.open()
	first, second := k.waits(f, s, f.path("a")), k.waits(f, s, f.path("a"))
	f.remove(first.place.Znode)
	f.must(g.GiveBack(f.ctx)) // a waiter learns of it when it looks
	_, err := first.result(f)
	f.is(err, recipes.ErrRemoved)
	f.must(second.value1(f).GiveBack(f.ctx))
}

func cohortClosed(f *fixture) {
	c := f.cohortOf(3)
	f.must(c.session.Close(f.ctx))
	for _, w := range c.waiting {
		_, err := w.result(f)
		f.is(err, recipes.ErrSessionLost, recipes.ErrClosed)
	}
	f.lost(c.hold, recipes.ErrSessionLost, recipes.ErrClosed)
	f.is(c.hold.GiveBack(f.ctx), recipes.ErrNotHeld)
	f.is(c.hold.Write(f.ctx), recipes.ErrNotHeld)
	if names := f.children(f.path("a")); len(names) != 0 {
		f.Errorf("in line stand %v", names)
	}
}
