package recipestest

import "github.com/zkrecipes/zkrecipes/recipes"

// lossTests tests the loss of a grant.
func lossTests() []kindTest {
	return []kindTest{
		{"closing the session loses the grant, and the next waiter is granted", func(f *fixture, k kind) {
			s := f.open()
			g := k.granted(f, s, f.path("a"))
			silent := k.granted(f, s, f.path("b")) // its Done is first called after the loss
			f.held(g)
			next := k.waits(f, f.open(), f.path("a"))
			f.must(s.Close(f.ctx))
			f.lost(g, recipes.ErrSessionLost, recipes.ErrClosed)
			f.forbidden(g, recipes.ErrSessionLost, recipes.ErrClosed)
			f.is(silent.Err(), recipes.ErrNotHeld, recipes.ErrClosed)
			next.must(f)
			f.failIf(f.exists(g.Znode()) || f.exists(silent.Znode()), "a znode exists after the close of its session")
		}},
		{"without contact, the grant is lost at the session's deadline", func(f *fixture, k kind) {
			var g grant
			s := f.openShort(func(s recipes.Client) (err error) {
				g, err = k.at(f, s, f.path("a")).Enter(f.ctx)
				return err
			})
			f.relay(s).Hold()
			f.lost(g, recipes.ErrSessionLost, recipes.ErrDeadline)
		}},
		{"deletion by another client loses the grant", func(f *fixture, k kind) {
			s := f.open()
			g := k.granted(f, s, f.path("a"))
			lost := g.Done()
			next := k.waits(f, f.open(), f.path("a"))
			f.remove(g.Znode())
			f.await(lost, "the loss of the grant")
			f.lost(g, recipes.ErrRemoved)
			f.isNot(g.Err(), recipes.ErrSessionLost)
			next.must(f)
			f.must(s.Err())
			k.granted(f, s, f.path("b"))
		}},
		{"deletion during a lost connection loses the grant", func(f *fixture, k kind) {
			s := f.open()
			g := k.granted(f, s, f.path("a"))
			f.held(g)
			f.sever(s)
			f.remove(g.Znode())
			f.held(g) // the session cannot notice the deletion yet
			f.relay(s).Restore()
			f.lost(g, recipes.ErrRemoved)
		}},
		{"Write notices a deletion without a watch, and writes nothing", func(f *fixture, k kind) {
			g := k.granted(f, f.open(), f.path("a"))
			f.remove(g.Znode())
			err := g.Err()
			f.failIf(err != nil, "Err = %v before any request", err)
			f.forbidden(g, recipes.ErrRemoved)
			f.lost(g, recipes.ErrRemoved)
		}},
		{"a suspended session keeps its grant", func(f *fixture, k kind) {
			s := f.open()
			g := k.granted(f, s, f.path("a"))
			f.held(g)
			f.sever(s)
			f.held(g)
			f.reconnect(s)
			f.must(g.Write(f.ctx))
			f.held(g)
		}},
		{"a call of Done after the loss returns a closed channel, and Err keeps its reason", func(f *fixture, k kind) {
			s := f.open()
			removed, released, closed := k.granted(f, s, f.path("a")), k.granted(f, s, f.path("b")), k.granted(f, s, f.path("c"))
			f.remove(removed.Znode())
			f.lost(removed, recipes.ErrRemoved)
			f.must(released.Release(f.ctx))
			f.lost(released, recipes.ErrReleased)
			f.must(s.Close(f.ctx))
			f.lost(closed, recipes.ErrClosed)
			// The first reason stays.
			f.lost(removed, recipes.ErrRemoved)
			f.lost(released, recipes.ErrReleased)
		}},
		{"expiry of the session loses the grant, and the next waiter is granted", nextAfterExpiry},
	}
}

func nextAfterExpiry(f *fixture, k kind) {
	s := f.open()
	g := k.granted(f, s, f.path("a"))
	f.held(g)
	next := k.waits(f, f.open(), f.path("a"))
	f.expire(s)
	f.lost(g, recipes.ErrSessionLost, recipes.ErrExpired)
	f.forbidden(g, recipes.ErrSessionLost, recipes.ErrExpired)
	got := next.must(f)
	f.failIf(got.Token() <= g.Token(), "token %d after %d", got.Token(), g.Token())
}
