package recipestest

import (
	"context"

	"github.com/go-zookeeper/zk"
	"golang.org/x/sync/errgroup"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// releaseTests tests Hold.Release and Leadership.Resign.
func releaseTests() []kindTest {
	return []kindTest{
		{"a release closes Done with ErrReleased", released},
		{"a second release returns the same result", func(f *fixture, k kind) {
			s := f.open()
			g := k.granted(f, s, f.path("a"))
			for range 3 {
				f.must(g.Release(f.ctx))
			}
			f.must(s.Close(f.ctx))
			f.must(g.Release(f.ctx))
		}},
		{"a release is safe from several goroutines", func(f *fixture, k kind) {
			g := k.granted(f, f.open(), f.path("a"))
			var together errgroup.Group
			for range 8 {
				together.Go(func() error {
					g.Done()
					_ = g.Write(f.ctx) // it may be refused, because it races with the release
					return g.Release(f.ctx)
				})
			}
			f.must(together.Wait())
			f.is(g.Err(), recipes.ErrReleased)
		}},
		{"a release closes Done before it sends anything", func(f *fixture, k kind) {
			s := f.open()
			g := k.granted(f, s, f.path("a"))
			f.relay(s).Hold() // no reply can arrive
			call := startErr(f, func() error { return g.Release(f.ctx) })
			f.lost(g, recipes.ErrReleased)
			call.blocked(f)
			f.failIf(!f.exists(g.Znode()), "the znode was deleted although no request can reach the server")
			f.relay(s).Restore()
			call.must(f)
			f.awaitNode(g.Znode(), false)
		}},
		{"when the context ends, a release continues in the background", func(f *fixture, k kind) {
			s := f.open()
			g := k.granted(f, s, f.path("a"))
			next := k.waits(f, f.open(), f.path("a"))
			f.relay(s).Hold()
			f.is(g.Release(f.briefly()), context.DeadlineExceeded)
			f.is(g.Err(), recipes.ErrReleased)
			f.is(g.Write(f.ctx), recipes.ErrNotHeld, recipes.ErrReleased)
			next.blocked(f)
			f.relay(s).Restore()
			next.must(f)
			f.must(g.Release(f.ctx)) // waits for the first call and returns its result
		}},
		{"a release whose reply is lost succeeds", func(f *fixture, k kind) {
			s := f.open()
			// The first contender of a semaphore writes the permits to the path, and its release then
			// sends a read. So the test releases the second grant. And the test creates the path: an
			// empty path of a wait queue is a container, which the server may delete between the grants.
			f.create(f.path("a"), "")
			f.must(k.granted(f, s, f.path("a")).Release(f.ctx))
			g := k.granted(f, s, f.path("a"))
			f.relay(s).HoldReplies()
			call := startErr(f, func() error { return g.Release(f.ctx) })
			f.awaitNode(g.Znode(), false)
			f.lose(s)
			call.must(f)
		}},
		{"a release during a lost connection succeeds after the reconnect", func(f *fixture, k kind) {
			s := f.open()
			g := k.granted(f, s, f.path("a"))
			f.sever(s)
			call := startErr(f, func() error { return g.Release(f.ctx) })
			f.lost(g, recipes.ErrReleased)
			f.restore(s)
			call.must(f)
			f.awaitNode(g.Znode(), false)
		}},
		{"releasing a grant whose znode was deleted is ErrNotHeld", func(f *fixture, k kind) {
			g := k.granted(f, f.open(), f.path("a"))
			f.held(g)
			f.remove(g.Znode())
			f.lost(g, recipes.ErrRemoved)
			for range 2 {
				f.is(g.Release(f.ctx), recipes.ErrNotHeld, recipes.ErrRemoved)
			}
			f.is(g.Err(), recipes.ErrRemoved)
		}},
		{"releasing before the deletion of the znode is noticed is ErrNotHeld", func(f *fixture, k kind) {
			g := k.granted(f, f.open(), f.path("a"))
			f.remove(g.Znode())
			for range 2 {
				f.is(g.Release(f.ctx), recipes.ErrNotHeld)
			}
		}},
		{"releasing after the loss of the session is ErrNotHeld", func(f *fixture, k kind) {
			s := f.open()
			g, closed := k.granted(f, s, f.path("a")), f.open()
			h := k.granted(f, closed, f.path("b"))
			f.expire(s)
			f.is(g.Release(f.ctx), recipes.ErrNotHeld, recipes.ErrSessionLost, recipes.ErrExpired)
			f.must(closed.Close(f.ctx))
			f.is(h.Release(f.ctx), recipes.ErrNotHeld, recipes.ErrSessionLost, recipes.ErrClosed)
		}},
		{"closing the session ends a pending release", func(f *fixture, k kind) {
			s := f.open()
			g := k.granted(f, s, f.path("a"))
			f.sever(s)
			call := startErr(f, func() error { return g.Release(f.ctx) })
			f.lost(g, recipes.ErrReleased)
			_ = s.Close(f.ended())
			f.is(call.failure(f), recipes.ErrNotHeld, recipes.ErrSessionLost)
		}},
		{"a release that the server refuses can be repeated", releaseRefused},
		// A grant whose znode cannot be watched is lost. Its znode may still exist, and
		// other contenders wait for it, so the release must delete it.
		{"a release deletes a znode that cannot be watched", func(f *fixture, k kind) {
			if k.hands(f) {
				f.Skip("only its creator can change the ACL of such a znode")
			}
			g := k.granted(f, f.open(), f.path("a"))
			next := k.waits(f, f.open(), f.path("a"))
			f.acl(g.Znode(), zk.PermAll&^zk.PermRead)
			f.lost(g)
			f.acl(g.Znode(), zk.PermAll) // otherwise the server sends the waiter no event for the deletion
			next.blocked(f)
			f.acl(f.path("a"), zk.PermRead|zk.PermAdmin)
			f.is(g.Release(f.ctx), recipes.ErrAccessDenied)
			f.acl(f.path("a"), zk.PermAll)
			for range 2 {
				f.is(g.Release(f.ctx), recipes.ErrNotHeld)
			}
			f.held(next.must(f))
		}},
		// A retried release of an earlier grant must not delete the znode of a newer
		// grant of the same session.
		{"a release does not delete the znode of a later grant", func(f *fixture, k kind) {
			s := f.open()
			old := k.granted(f, s, f.path("a"))
			f.remove(old.Znode())
			f.is(old.Write(f.ctx), recipes.ErrRemoved)
			g := k.granted(f, s, f.path("a"))
			f.is(old.Release(f.ctx), recipes.ErrNotHeld)
			f.held(g)
			f.must(g.Write(f.ctx))
		}},
	}
}

func released(f *fixture, k kind) {
	g := k.granted(f, f.open(), f.path("a"))
	lost := g.Done()
	f.must(g.Release(f.ctx))
	select {
	case <-lost:
	default:
		f.Error("Done is not closed")
	}
	f.is(g.Err(), recipes.ErrNotHeld, recipes.ErrReleased)
	f.isNot(g.Err(), recipes.ErrSessionLost, recipes.ErrRemoved)
	f.forbidden(g, recipes.ErrReleased)
	f.empty(f.path("a"))
}

func releaseRefused(f *fixture, k kind) {
	g := k.granted(f, f.open(), f.path("a"))
	f.must(g.Write(f.ctx))
	next := k.waits(f, f.open(), f.path("a"))
	f.acl(f.path("a"), zk.PermRead|zk.PermAdmin)
	for range 2 {
		err := g.Release(f.ctx)
		f.is(err, recipes.ErrAccessDenied)
		f.isNot(err, recipes.ErrNotHeld)
		f.lost(g, recipes.ErrReleased)
		f.is(g.Write(f.ctx), recipes.ErrNotHeld, recipes.ErrReleased)
		next.blocked(f)
	}
	f.failIf(!f.exists(g.Znode()), "the znode was deleted although the server refused that")
	f.acl(f.path("a"), zk.PermAll)
	for range 2 {
		f.must(g.Release(f.ctx))
	}
	f.held(next.must(f))
	f.failIf(f.exists(g.Znode()), "the znode exists after the release")
}
