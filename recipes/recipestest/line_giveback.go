package recipestest

import (
	"context"

	"github.com/go-zookeeper/zk"
	"golang.org/x/sync/errgroup"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// giveBackTests are about Hold.Release and Leadership.Resign.
func giveBackTests() []kindTest {
	return []kindTest{
		{"giving back closes Done with ErrReleased", givenBack},
		{"giving back wakes the next", nextAfterGiveBack},
		{"giving back again returns the same", givenBackAgain},
		{"giving back is safe from several goroutines", givenBackTogether},
		{"giving back closes Done before anything is sent", lostBeforeSent},
		{"a context that ends leaves the deletion to the background", givenBackInBackground},
		{"giving back over a lost reply succeeds", giveBackReplyLost},
		{"giving back during a lost connection succeeds when it is back", givenBackWhileSevered},
		{"giving back what was removed is ErrNotHeld", giveBackRemoved},
		{"giving back what was removed unnoticed is ErrNotHeld", giveBackRemovedUnnoticed},
		{"giving back after the session's loss is ErrNotHeld", giveBackAfterLoss},
		{"closing the session ends giving back", giveBackClosed},
		{"giving back that the server refuses can be tried again", giveBackRefused},
		{"giving back deletes a znode that cannot be watched", giveBackUnwatched},
		{"giving back does not touch a later grant", giveBackOnlyOwn},
	}
}

func givenBack(f *fixture, k kind) {
	g := k.granted(f, f.open(), f.path("a"))
	lost := g.Done()
	f.must(g.GiveBack(f.ctx))
	select {
	case <-lost:
	default:
		f.Error("Done is not closed")
	}
	f.is(g.Err(), recipes.ErrNotHeld, recipes.ErrReleased)
	f.isNot(g.Err(), recipes.ErrSessionLost, recipes.ErrRemoved)
	if names := f.children(f.path("a")); len(names) != 0 {
		f.Errorf("left behind: %v", names)
	}
}

func nextAfterGiveBack(f *fixture, k kind) {
	g := k.granted(f, f.open(), f.path("a"))
	next := k.waits(f, f.open(), f.path("a"))
	next.blocked(f)
	f.must(g.GiveBack(f.ctx))
	f.held(next.value1(f))
}

func givenBackAgain(f *fixture, k kind) {
	s := f.open()
	g := k.granted(f, s, f.path("a"))
	for range 3 {
		f.must(g.GiveBack(f.ctx))
	}
	f.must(s.Close(f.ctx))
	f.must(g.GiveBack(f.ctx))
}

func givenBackTogether(f *fixture, k kind) {
	g := k.granted(f, f.open(), f.path("a"))
	var together errgroup.Group
	for range 8 {
		together.Go(func() error {
			g.Done()
			_ = g.Write(f.ctx) // races with it, and is refused or not
			return g.GiveBack(f.ctx)
		})
	}
	f.must(together.Wait())
	f.is(g.Err(), recipes.ErrReleased)
}

func lostBeforeSent(f *fixture, k kind) {
	s := f.open()
	g := k.granted(f, s, f.path("a"))
	f.relay(s).Hold() // nothing can be answered
	call := startErr(f, func() error { return g.GiveBack(f.ctx) })
	f.lost(g, recipes.ErrReleased)
	call.blocked(f)
	if !f.exists(g.Znode()) {
		f.Error("the znode is gone though nothing can reach the server")
	}
	f.relay(s).Restore()
	_, err := call.result(f)
	f.must(err)
	f.awaitNode(g.Znode(), false)
}

func givenBackInBackground(f *fixture, k kind) {
	s := f.open()
	g := k.granted(f, s, f.path("a"))
	next := k.waits(f, f.open(), f.path("a"))
	f.relay(s).Hold()
	f.is(g.GiveBack(f.briefly()), context.DeadlineExceeded)
	f.is(g.Err(), recipes.ErrReleased)
	f.is(g.Write(f.ctx), recipes.ErrNotHeld, recipes.ErrReleased)
	next.blocked(f)
	f.relay(s).Restore()
	next.value1(f)
	f.must(g.GiveBack(f.ctx)) // waits for the first, and returns its result
}

func giveBackReplyLost(f *fixture, k kind) {
	s := f.open()
	// The first contender writes the permits to the path. Its release reads after that.
	f.must(k.granted(f, s, f.path("a")).GiveBack(f.ctx))
	g := k.granted(f, s, f.path("a"))
	f.relay(s).HoldReplies()
	call := startErr(f, func() error { return g.GiveBack(f.ctx) })
	f.awaitNode(g.Znode(), false)
	f.relay(s).Drop()
	f.relay(s).Restore()
	_, err := call.result(f)
	f.must(err) // it was this deletion that removed it
}

func givenBackWhileSevered(f *fixture, k kind) {
	s := f.open()
	g := k.granted(f, s, f.path("a"))
	f.sever(s)
	call := startErr(f, func() error { return g.GiveBack(f.ctx) })
	f.lost(g, recipes.ErrReleased)
	f.relay(s).Restore()
	_, err := call.result(f)
	f.must(err)
	f.awaitNode(g.Znode(), false)
}

func giveBackRemoved(f *fixture, k kind) {
	g := k.granted(f, f.open(), f.path("a"))
	f.held(g)
	f.remove(g.Znode())
	f.lost(g, recipes.ErrRemoved)
	for range 2 {
		f.is(g.GiveBack(f.ctx), recipes.ErrNotHeld, recipes.ErrRemoved)
	}
	f.is(g.Err(), recipes.ErrRemoved)
}

func giveBackRemovedUnnoticed(f *fixture, k kind) {
	g := k.granted(f, f.open(), f.path("a"))
	f.remove(g.Znode())
	for range 2 {
		f.is(g.GiveBack(f.ctx), recipes.ErrNotHeld)
	}
}

func giveBackAfterLoss(f *fixture, k kind) {
	s := f.open()
	g, closed := k.granted(f, s, f.path("a")), f.open()
	h := k.granted(f, closed, f.path("b"))
	f.expire(s)
	f.is(g.GiveBack(f.ctx), recipes.ErrNotHeld, recipes.ErrSessionLost, recipes.ErrExpired)
	f.must(closed.Close(f.ctx))
	f.is(h.GiveBack(f.ctx), recipes.ErrNotHeld, recipes.ErrSessionLost, recipes.ErrClosed)
}

func giveBackClosed(f *fixture, k kind) {
	s := f.open()
	g := k.granted(f, s, f.path("a"))
	f.sever(s)
	call := startErr(f, func() error { return g.GiveBack(f.ctx) })
	f.lost(g, recipes.ErrReleased)
	_ = s.Close(f.ended())
	_, err := call.result(f)
	f.is(err, recipes.ErrNotHeld, recipes.ErrSessionLost)
}

func giveBackRefused(f *fixture, k kind) {
	g := k.granted(f, f.open(), f.path("a"))
	f.must(g.Write(f.ctx))
	next := k.waits(f, f.open(), f.path("a"))
	f.acl(f.path("a"), zk.PermRead|zk.PermAdmin)
	for range 2 {
		err := g.GiveBack(f.ctx)
		f.is(err, recipes.ErrAccessDenied)
		f.isNot(err, recipes.ErrNotHeld)
		f.lost(g, recipes.ErrReleased)
		f.is(g.Write(f.ctx), recipes.ErrNotHeld, recipes.ErrReleased)
		next.blocked(f)
	}
	if !f.exists(g.Znode()) {
		f.Error("the znode is gone though its deletion was refused")
	}
	f.acl(f.path("a"), zk.PermAll)
	for range 2 {
		f.must(g.GiveBack(f.ctx))
	}
	f.held(next.value1(f))
	if f.exists(g.Znode()) {
		f.Error("the znode is there when it has been given back")
	}
}

// giveBackUnwatched: a grant is lost when its znode cannot be watched. The znode may
// be there, and then the others wait for it.
func giveBackUnwatched(f *fixture, k kind) {
	if k.hands() {
		f.Skip("nobody else may change the ACL of such a znode")
	}
	g := k.granted(f, f.open(), f.path("a"))
	next := k.waits(f, f.open(), f.path("a"))
	f.acl(g.Znode(), zk.PermAll&^zk.PermRead)
	f.lost(g)
	f.acl(g.Znode(), zk.PermAll) // or the server would not tell the waiter of its deletion
	next.blocked(f)
	f.acl(f.path("a"), zk.PermRead|zk.PermAdmin)
	f.is(g.GiveBack(f.ctx), recipes.ErrAccessDenied)
	f.acl(f.path("a"), zk.PermAll)
	for range 2 {
		f.is(g.GiveBack(f.ctx), recipes.ErrNotHeld)
	}
	f.held(next.value1(f))
}

// giveBackOnlyOwn: a retried unlock of an earlier grant must not delete a newer
// one of the same session.
func giveBackOnlyOwn(f *fixture, k kind) {
	s := f.open()
	old := k.granted(f, s, f.path("a"))
	f.remove(old.Znode())
	f.is(old.Write(f.ctx), recipes.ErrRemoved)
	g := k.granted(f, s, f.path("a"))
	f.is(old.GiveBack(f.ctx), recipes.ErrNotHeld)
	f.held(g)
	f.must(g.Write(f.ctx))
}
