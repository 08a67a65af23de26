package recipestest

import (
	"context"

	"github.com/go-zookeeper/zk"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// waitTests are about waiting in line and leaving it.
func waitTests() []kindTest {
	return []kindTest{
		{"cancelling leaves the line", cancelLeaves},
		{"a deadline leaves the line", deadlineLeaves},
		{"a context that has ended enters nothing", endedContext},
		{"a contender that leaves the middle of the line leaves the order as it was", cancelInTheMiddle},
		{"a contender that leaves while the connection is down is removed when it is back", cancelWhileSevered},
		{"a lost connection keeps the place in line", waiterReconnects},
		{"a departure during a lost connection is not missed", departureWhileSevered},
		{"a change of data wakes nobody into a grant", dataChange},
		{"a waiter whose znode was removed gets ErrRemoved", waiterRemoved},
		{"a waiter whose session is closed gets ErrClosed", waiterClosed},
		{"a waiter whose session expires gets ErrExpired", waiterExpires},
		{"on a lost session nobody enters", enterAfterLoss},
		{"a lost reply to the creation leaves one contender", creationReplyLost},
		{"a lost creation is made again", creationLost},
		{"a cancellation while the creation's outcome is unknown leaves nobody", creationCancelled},
	}
}

func cancelLeaves(f *fixture, k kind) {
	s := f.open()
	g := k.granted(f, s, f.path("a"))
	w, next := k.waits(f, s, f.path("a")), k.waits(f, f.open(), f.path("a"))
	w.cancel()
	_, err := w.result(f)
	f.is(err, context.Canceled)
	f.isNot(err, recipes.ErrSessionLost, recipes.ErrNotHeld, recipes.ErrUnavailable)
	f.awaitNode(w.place.Znode, false)
	f.held(g)
	f.must(g.GiveBack(f.ctx))
	f.must(next.value1(f).GiveBack(f.ctx))
	f.awaitChildren(f.path("a"), 0)
}

func deadlineLeaves(f *fixture, k kind) {
	s := f.open()
	k.granted(f, s, f.path("a"))
	_, err := k.at(f, s, f.path("a")).Enter(f.briefly())
	f.is(err, context.DeadlineExceeded)
	f.awaitChildren(f.path("a"), 1)
}

func endedContext(f *fixture, k kind) {
	s := f.open()
	before := f.stats(s).Writes
	_, err := k.at(f, s, f.path("a")).Enter(f.ended())
	f.is(err, context.Canceled)
	if sent := f.stats(s).Writes - before; sent != 0 || f.exists(f.path("a")) {
		f.Errorf("%d writes were sent", sent)
	}
}

func cancelInTheMiddle(f *fixture, k kind) {
	s := f.open()
	g := k.granted(f, s, f.path("a"))
	first, middle, last := k.waits(f, s, f.path("a")), k.waits(f, f.open(), f.path("a")), k.waits(f, f.open(), f.path("a"))
	middle.cancel()
	middle.result(f)
	f.awaitNode(middle.place.Znode, false)
	last.blocked(f)
	f.must(g.GiveBack(f.ctx))
	g = first.value1(f)
	last.blocked(f)
	f.must(g.GiveBack(f.ctx))
	last.value1(f)
}

func cancelWhileSevered(f *fixture, k kind) {
	g := k.granted(f, f.open(), f.path("a"))
	s := f.open()
	w := k.waits(f, s, f.path("a"))
	f.sever(s)
	w.cancel()
	_, err := w.result(f)
	f.is(err, context.Canceled)
	if !f.exists(w.place.Znode) {
		f.Error("the znode is gone while its session cannot reach the server")
	}
	f.relay(s).Restore()
	f.awaitNode(w.place.Znode, false)
	f.held(g)
}

func waiterReconnects(f *fixture, k kind) {
	g := k.granted(f, f.open(), f.path("a"))
	s := f.open()
	w := k.waits(f, s, f.path("a"))
	for range 3 {
		f.sever(s)
		f.reconnect(s)
	}
	w.blocked(f)
	f.must(g.GiveBack(f.ctx))
	if got := w.value1(f).Znode(); got != w.place.Znode {
		f.Errorf("granted as %s; joined as %s", got, w.place.Znode)
	}
}

func departureWhileSevered(f *fixture, k kind) {
	g := k.granted(f, f.open(), f.path("a"))
	s := f.open()
	w := k.waits(f, s, f.path("a"))
	f.sever(s)
	f.must(g.GiveBack(f.ctx))
	w.blocked(f)
	f.relay(s).Restore()
	f.held(w.value1(f))
}

func dataChange(f *fixture, k kind) {
	g := k.granted(f, f.open(), f.path("a"))
	s := f.open()
	w := k.waits(f, s, f.path("a"))
	k.watches(f, s, f.path("a"))
	before := f.stats(s)
	_, err := f.connect(f.servers).Set(g.Znode(), []byte("changed"), -1) // another client
	if k.hands() {                                                       // a change would mean a release
		f.is(err, zk.ErrNoAuth)
		f.must(g.GiveBack(f.ctx))
		w.value1(f)
		return
	}
	f.must(err)
	f.reach(s, func(c recipes.Stats) bool {
		return c.WatchEvents > before.WatchEvents && c.ByKind["getData"] > before.ByKind["getData"]
	})
	w.blocked(f)
	f.held(g)
	f.must(g.GiveBack(f.ctx))
	w.value1(f)
}

func waiterRemoved(f *fixture, k kind) {
	g := k.granted(f, f.open(), f.path("a"))
	w := k.waits(f, f.open(), f.path("a"))
	next := k.waits(f, f.open(), f.path("a"))
	f.remove(w.place.Znode)
	f.must(g.GiveBack(f.ctx))
	_, err := w.result(f)
	f.is(err, recipes.ErrRemoved)
	f.isNot(err, recipes.ErrSessionLost)
	next.value1(f)
}

func waiterClosed(f *fixture, k kind) {
	k.granted(f, f.open(), f.path("a"))
	s := f.open()
	w := k.waits(f, s, f.path("a"))
	f.must(s.Close(f.ctx))
	_, err := w.result(f)
	f.is(err, recipes.ErrSessionLost, recipes.ErrClosed)
	if f.exists(w.place.Znode) {
		f.Error("the znode has outlived its session")
	}
}

func waiterExpires(f *fixture, k kind) {
	g := k.granted(f, f.open(), f.path("a"))
	s := f.open()
	w := k.waits(f, s, f.path("a"))
	f.expire(s)
	_, err := w.result(f)
	f.is(err, recipes.ErrSessionLost, recipes.ErrExpired)
	f.held(g)
}

func enterAfterLoss(f *fixture, k kind) {
	for reason, end := range map[error]func(recipes.Client){
		recipes.ErrClosed:  func(s recipes.Client) { f.must(s.Close(f.ctx)) },
		recipes.ErrExpired: func(s recipes.Client) { f.expire(s) },
	} {
		s := f.open()
		l := k.at(f, s, f.path("a"))
		end(s)
		_, err := l.Enter(f.ctx)
		f.is(err, recipes.ErrSessionLost, reason)
		_, err = l.Contenders(f.ctx)
		f.is(err, recipes.ErrSessionLost, reason)
		_, err = k.at(f, s, f.path("b")).Enter(f.ctx) // a line sends nothing when it is made
		f.is(err, recipes.ErrSessionLost, reason)
	}
	if names := f.children(f.path("a")); len(names) != 0 {
		f.Errorf("left behind: %v", names)
	}
}
