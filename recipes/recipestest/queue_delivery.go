package recipestest

import (
	"context"
	"slices"

	"github.com/zkrecipes/zkrecipes/recipes"
)

func deliveryTests() []queueTest {
	return []queueTest{
		{"receive/the element stays claimed until it is acknowledged", func(f *fixture, form queueForm) {
			s := f.open()
			e := form.end(f, s, f.path("a"))
			id := e.put("one")[0]
			d := e.receives("one", 1)
			f.held(d)
			want := f.path("a", "claims", string(id)+"-1")
			f.failIf(d.Znode() != want, "claimed by %s; want %s", d.Znode(), want)
			if _, stat := f.read(d.Znode()); stat.EphemeralOwner != s.ID() || stat.Czxid != int64(d.Token()) {
				f.Errorf("the claim has owner %#x and czxid %d; token %d", stat.EphemeralOwner, stat.Czxid, d.Token())
			}
			e.holds(1)
			lost := d.Done()
			f.must(d.Ack(f.ctx))
			f.await(lost, "the end of the delivery")
			f.is(d.Err(), recipes.ErrReleased)
			e.holds(0)
			f.empty(f.path("a", "claims"))
		}},
		{"receive/an acknowledgement whose reply is lost succeeds", func(f *fixture, form queueForm) {
			e := form.end(f, f.open(), f.path("a"))
			id := e.put("one")[0]
			d := e.receives("one", 1)
			var call *pending[struct{}]
			e.replyLost(func() {
				call = startErr(f, func() error { return d.Ack(f.ctx) })
			}, func() { f.awaitNode(f.path("a", string(id)), false) })
			call.must(f)
			e.put("two")
			e.takes("two")
		}},
		{"receive/a claimed element is neither taken nor received again", func(f *fixture, form queueForm) {
			e, other := form.end(f, f.open(), f.path("a")), form.end(f, f.open(), f.path("a"))
			e.put("one")
			d := e.receives("one", 1)
			for _, e := range []end{e, other} {
				f.is(errOf(e.Take(f.briefly())), context.DeadlineExceeded)
				f.is(errOf(e.Receive(f.briefly())), context.DeadlineExceeded)
			}
			other.put("two")
			other.takes("two")
			f.held(d)
		}},
		{"receive/a returned element is delivered again and wakes waiters", func(f *fixture, form queueForm) {
			e, other := form.end(f, f.open(), f.path("a")), form.end(f, f.open(), f.path("a"))
			e.put("one", "two")
			d := e.receives("one", 1)
			f.must(d.Return(f.ctx))
			f.must(d.Return(f.ctx))
			again := other.receives("one", 2)
			f.failIf(again.Token() <= d.Token(), "token %d after %d", again.Token(), d.Token())
			f.must(e.receives("two", 1).Ack(f.ctx))
			waiting := e.receiving()
			waiting.blocked(f)
			f.must(again.Return(f.ctx))
			back := waiting.must(f)
			f.delivered(back, "one", 3)
			f.must(back.Ack(f.ctx))
			e.holds(0)
		}},
		// CURATOR-605: the end of a session delivered one item to two consumers.
		{"receive/when a session ends, its elements are delivered to others", func(f *fixture, form queueForm) {
			dying := f.open()
			e, other := form.end(f, dying, f.path("a")), form.end(f, f.open(), f.path("a"))
			e.put("one")
			d := e.receives("one", 1)
			waiting := other.receiving()
			waiting.blocked(f)
			f.expire(dying)
			f.lost(d, recipes.ErrSessionLost, recipes.ErrExpired)
			back := waiting.must(f)
			f.delivered(back, "one", 2)
			f.is(d.Ack(f.ctx), recipes.ErrNotHeld, recipes.ErrSessionLost)
			f.is(d.Return(f.ctx), recipes.ErrNotHeld)
			f.held(back)
			f.must(back.Ack(f.ctx))
			other.holds(0)
		}},
		{"receive/a consumer whose claim is deleted cannot acknowledge", func(f *fixture, form queueForm) {
			watched, unwatched := form.end(f, f.open(), f.path("a")), form.end(f, f.open(), f.path("b"))
			for _, e := range []end{watched, unwatched} {
				e.put("one")
			}
			d, quiet := watched.receives("one", 1), unwatched.receives("one", 1)
			f.held(d)
			f.remove(d.Znode())
			f.lost(d, recipes.ErrRemoved)
			f.is(d.Ack(f.ctx), recipes.ErrRemoved)
			f.remove(quiet.Znode())
			again := unwatched.receives("one", 2)
			f.is(quiet.Ack(f.ctx), recipes.ErrNotHeld, recipes.ErrRemoved)
			f.held(again)
			watched.holds(1)
			unwatched.holds(1)
			f.must(again.Ack(f.ctx))
		}},
		{"receive/after the last delivery the element is a dead letter", func(f *fixture, form queueForm) {
			e := form.end(f, f.open(), f.path("a"), recipes.QueueConfig{MaxDeliveries: 2})
			e.dead()
			ids := e.put("bad", "good")
			for range 2 {
				for {
					d := get(f, e.Receive)
					if string(d.Element().Data) == "bad" {
						f.must(d.Return(f.ctx))
						break
					}
					f.must(d.Ack(f.ctx))
				}
			}
			e.dead("bad")
			data, _ := f.read(f.path("a", "dead", string(ids[0])))
			f.failIf(data != "bad", "the dead letter has data %q", data)
			if n, err := e.Len(f.ctx); err != nil || n > 0 { // the element may have been received while bad was returned
				e.takes("good")
			}
			e.holds(0)
			f.awaitChildren(f.path("a", "claims"), 0)
		}},
		{"receive/a delivery whose session ends counts, even the last", func(f *fixture, form queueForm) {
			cfg := recipes.QueueConfig{MaxDeliveries: 1}
			dying := f.open()
			e, other := form.end(f, dying, f.path("a"), cfg), form.end(f, f.open(), f.path("a"), cfg)
			e.put("bad", "good")
			e.receives("bad", 1)
			f.must(dying.Close(f.ctx))
			f.must(other.receives("good", 1).Ack(f.ctx))
			other.dead("bad")
			other.holds(0)
		}},
		{"receive/the first of Ack and Return decides, and both can be repeated", func(f *fixture, form queueForm) {
			e := form.end(f, f.open(), f.path("a"))
			e.put("one", "two")
			one, two := e.receives("one", 1), e.receives("two", 1)
			for range 2 {
				f.must(one.Ack(f.ctx))
				f.is(one.Return(f.ctx), recipes.ErrReleased)
				f.must(two.Return(f.ctx))
				f.is(two.Ack(f.ctx), recipes.ErrReleased, recipes.ErrNotHeld)
			}
			e.holds(1)
			e.takes("two")
		}},
		{"receive/a cancelled call leaves no claim", func(f *fixture, form queueForm) {
			s := f.open()
			e := form.end(f, s, f.path("a"))
			e.put("one")
			f.must(e.receives("one", 1).Return(f.ctx))
			for range 3 {
				f.relay(s).Hold()
				ctx, cancel := context.WithCancel(f.ctx)
				call := start(f, func() (recipes.Delivery, error) { return e.Receive(ctx) })
				cancel()
				f.is(call.failure(f), context.Canceled)
				f.relay(s).Restore()
				other := form.end(f, f.open(), f.path("a"))
				d, err := other.Receive(f.ctx) // waits until the claim is deleted in the background
				f.must(err)
				f.must(d.Return(f.ctx))
			}
			e.holds(1)
		}},
		{"receive/a delivery's writes are guarded by its claim", func(f *fixture, form queueForm) {
			e := form.end(f, f.open(), f.path("a"))
			e.put("one")
			f.create(f.path("result"), "")
			d := e.receives("one", 1)
			f.must(d.Write(f.ctx, recipes.Set(f.path("result"), []byte("by one"), recipes.AnyVersion)))
			f.remove(d.Znode())
			f.is(d.Write(f.ctx, recipes.Set(f.path("result"), []byte("late"), recipes.AnyVersion)), recipes.ErrNotHeld)
			data, _ := f.read(f.path("result"))
			f.failIf(data != "by one", "written %q", data)
		}},
	}
}

func (e end) dead(want ...string) {
	e.f.Helper()
	dead, err := e.DeadLetters(e.f.ctx)
	e.f.must(err)
	var got []string
	for _, d := range dead {
		got = append(got, string(d.Data))
	}
	if !slices.Equal(got, want) {
		e.f.Errorf("dead letters %q; want %q", got, want)
	}
}
