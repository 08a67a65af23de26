package recipestest

import (
	"context"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// waitTests tests waiting and leaving the wait queue.
func waitTests() []kindTest {
	return []kindTest{
		{"a waiter waits for its own session too, and leaves the wait queue when it is cancelled", cancelLeaves},
		{"a waiter whose deadline passes leaves the wait queue", func(f *fixture, k kind) {
			s := f.open()
			k.granted(f, s, f.path("a"))
			f.is(errOf(k.at(f, s, f.path("a")).Enter(f.briefly())), context.DeadlineExceeded)
			f.awaitChildren(f.path("a"), 1)
		}},
		{"a call with a context that has ended creates nothing", func(f *fixture, k kind) {
			s := f.open()
			f.writesNothing(s, func() { f.is(errOf(k.at(f, s, f.path("a")).Enter(f.ended())), context.Canceled) })
			f.failIf(f.exists(f.path("a")), "the path was created")
		}},
		{"a waiter that leaves does not change the order of the others", func(f *fixture, k kind) {
			s := f.open()
			g := k.granted(f, s, f.path("a"))
			first, middle, last := k.waits(f, s, f.path("a")), k.waits(f, f.open(), f.path("a")), k.waits(f, f.open(), f.path("a"))
			middle.cancel()
			middle.result(f)
			f.awaitNode(middle.place.Znode, false)
			last.blocked(f)
			f.must(g.Release(f.ctx))
			g = first.must(f)
			last.blocked(f)
			f.must(g.Release(f.ctx))
			last.must(f)
		}},
		{"the znode of a waiter that leaves during a lost connection is deleted after the reconnect", func(f *fixture, k kind) {
			g := k.granted(f, f.open(), f.path("a"))
			s := f.open()
			w := k.waits(f, s, f.path("a"))
			f.sever(s)
			w.cancel()
			f.is(w.failure(f), context.Canceled)
			f.failIf(!f.exists(w.place.Znode), "the znode was deleted although its session cannot reach the server")
			f.restore(s)
			f.awaitNode(w.place.Znode, false)
			f.held(g)
		}},
		{"a release during a lost connection is not missed", departureWhileSevered},
		{"a change of the holder's data grants nothing", func(f *fixture, k kind) {
			g := k.granted(f, f.open(), f.path("a"))
			s := f.open()
			w := k.waits(f, s, f.path("a"))
			k.watches(f, s, f.path("a"))
			before := f.stats(s)
			_, err := f.connect(f.servers).Set(g.Znode(), []byte("changed"), -1) // another client
			if k.hands(f) {
				// The ACL forbids it, because a change of the data would signal a release.
				f.is(err, zk.ErrNoAuth)
				f.must(g.Release(f.ctx))
				w.must(f)
				return
			}
			f.must(err)
			f.reach(s, func(c recipes.Stats) bool {
				return c.WatchEvents > before.WatchEvents && c.ByKind["getData"] > before.ByKind["getData"]
			})
			w.blocked(f)
			f.held(g)
			f.must(g.Release(f.ctx))
			w.must(f)
		}},
		{"a waiter whose znode is deleted gets ErrRemoved", func(f *fixture, k kind) {
			g := k.granted(f, f.open(), f.path("a"))
			w := k.waits(f, f.open(), f.path("a"))
			next := k.waits(f, f.open(), f.path("a"))
			f.remove(w.place.Znode)
			f.must(g.Release(f.ctx))
			err := w.failure(f)
			f.is(err, recipes.ErrRemoved)
			f.isNot(err, recipes.ErrSessionLost)
			next.must(f)
		}},
		{"a waiter whose session is closed gets ErrClosed", func(f *fixture, k kind) {
			k.granted(f, f.open(), f.path("a"))
			s := f.open()
			w := k.waits(f, s, f.path("a"))
			f.must(s.Close(f.ctx))
			f.is(w.failure(f), recipes.ErrSessionLost, recipes.ErrClosed)
			f.failIf(f.exists(w.place.Znode), "the znode exists after the close of its session")
		}},
		{"a waiter whose session expires gets ErrExpired", func(f *fixture, k kind) {
			g := k.granted(f, f.open(), f.path("a"))
			s := f.open()
			w := k.waits(f, s, f.path("a"))
			f.expire(s)
			f.is(w.failure(f), recipes.ErrSessionLost, recipes.ErrExpired)
			f.held(g)
		}},
		{"a call on a lost session is ErrSessionLost", func(f *fixture, k kind) {
			for reason, end := range map[error]func(recipes.Client){
				recipes.ErrClosed:  func(s recipes.Client) { f.must(s.Close(f.ctx)) },
				recipes.ErrExpired: func(s recipes.Client) { f.expire(s) },
			} {
				s := f.open()
				l := k.at(f, s, f.path("a"))
				end(s)
				f.is(errOf(l.Enter(f.ctx)), recipes.ErrSessionLost, reason)
				f.is(errOf(l.Contenders(f.ctx)), recipes.ErrSessionLost, reason)
				_, err := k.at(f, s, f.path("b")).Enter(f.ctx) // opening a recipe sends nothing, so it succeeds
				f.is(err, recipes.ErrSessionLost, reason)
			}
			f.empty(f.path("a"))
		}},
		// This is why the znode carries a GUID: the contender finds its znode again by it.
		{"a create whose reply is lost leaves one contender", func(f *fixture, k kind) {
			s := f.open()
			call := k.entersUnanswered(f, f.ctx, s)
			f.lose(s)
			g := call.must(f)
			if names := f.children(f.path("a")); len(names) != 1 || f.path("a", names[0]) != g.Znode() {
				f.Errorf("granted as %s; the wait queue is %v", g.Znode(), names)
			}
			f.must(g.Release(f.ctx))
			f.awaitChildren(f.path("a"), 0)
		}},
		{"a create whose request is lost is repeated", func(f *fixture, k kind) {
			f.create(f.path("a"), "")
			s := f.open()
			f.relay(s).Hold()
			before := f.stats(s).Writes
			l := k.at(f, s, f.path("a"))
			call := start(f, func() (grant, error) { return l.Enter(f.ctx) })
			f.reach(s, func(c recipes.Stats) bool { return c.Writes > before })
			f.lose(s)
			call.must(f)
			names := f.children(f.path("a"))
			f.failIf(len(names) != 1, "the wait queue is %v; want one contender", names)
		}},
		{"a cancellation while the outcome of the create is unknown leaves no contender", func(f *fixture, k kind) {
			s := f.open()
			ctx, cancel := context.WithCancel(f.ctx)
			defer cancel()
			call := k.entersUnanswered(f, ctx, s)
			cancel()
			f.is(call.failure(f), context.Canceled)
			f.lose(s)
			f.awaitChildren(f.path("a"), 0)
			f.must(s.Err())
		}},
	}
}

func cancelLeaves(f *fixture, k kind) {
	s := f.open()
	g := k.granted(f, s, f.path("a"))
	w, next := k.waits(f, s, f.path("a")), k.waits(f, f.open(), f.path("a"))
	w.cancel()
	err := w.failure(f)
	f.is(err, context.Canceled)
	f.isNot(err, recipes.ErrSessionLost, recipes.ErrNotHeld, recipes.ErrUnavailable)
	f.awaitNode(w.place.Znode, false)
	f.held(g)
	f.must(g.Release(f.ctx))
	f.must(next.must(f).Release(f.ctx))
	f.awaitChildren(f.path("a"), 0)
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
	f.must(g.Release(f.ctx))
	got := w.must(f).Znode()
	f.failIf(got != w.place.Znode, "granted as %s; joined as %s", got, w.place.Znode)
}

func departureWhileSevered(f *fixture, k kind) {
	g := k.granted(f, f.open(), f.path("a"))
	s := f.open()
	w := k.waits(f, s, f.path("a"))
	f.sever(s)
	f.must(g.Release(f.ctx))
	w.blocked(f)
	f.restore(s)
	f.held(w.must(f))
}

// entersUnanswered starts to enter the wait queue in a session that receives no replies. It
// returns when the server has created the contender's znode.
func (k kind) entersUnanswered(f *fixture, ctx context.Context, s recipes.Client) *pending[grant] {
	f.Helper()
	f.create(f.path("a"), "")
	if !f.since35() { // if the server refuses the session's first create2, that reply must not be held
		f.must(k.granted(f, s, f.path("b")).Release(f.ctx))
	}
	f.relay(s).HoldReplies()
	l := k.at(f, s, f.path("a"))
	call := start(f, func() (grant, error) { return l.Enter(ctx) })
	f.awaitChildren(f.path("a"), 1)
	return call
}
