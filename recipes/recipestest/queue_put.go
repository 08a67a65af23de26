package recipestest

import (
	"context"
	"fmt"
	"regexp"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/recipes"
)

func putTests() []queueTest {
	return []queueTest{
		{"put/elements are persistent, with the names of the source text", func(f *fixture, form queueForm) {
			e := form.end(f, f.open(), f.path("a"))
			f.failIf(e.Path() != f.path("a"), "path %q", e.Path())
			ids := e.put("one", "two")
			for i, id := range ids {
				f.failIf(!regexp.MustCompile(form.pattern).MatchString(string(id)), "named %q", id)
				data, stat := f.read(f.path("a", string(id)))
				if data != []string{"one", "two"}[i] || stat.EphemeralOwner != 0 {
					f.Errorf("%s has data %q and owner %#x", id, data, stat.EphemeralOwner)
				}
			}
			f.must(e.s.Close(f.ctx))
			form.end(f, f.open(), f.path("a")).takes("one", "two")
		}},
		{"put/PutMany puts all elements in order in one transaction, or none", func(f *fixture, form queueForm) {
			e := form.end(f, f.open(), f.path("a"))
			ids := must.Get(e.many(f.ctx, []byte("1"), []byte("2"), []byte("3")))(f)
			f.failIf(len(ids) != 3 || ids[0] >= ids[1] || ids[1] >= ids[2], "named %q", ids)
			_, one := f.read(f.path("a", string(ids[0])))
			_, three := f.read(f.path("a", string(ids[2])))
			f.failIf(one.Czxid != three.Czxid, "put in several transactions")
			if ids, err := e.many(f.ctx); len(ids) != 0 || err != nil {
				f.Errorf("put nothing: %q, %v", ids, err)
			}
			big := make([]byte, 1<<19)
			f.is(errOf(e.many(f.ctx, big, big, big)), recipes.ErrTooLarge)
			e.holds(3)
			e.takes("1", "2", "3")
		}},
		{"put/a put whose reply is lost is not repeated", func(f *fixture, form queueForm) {
			e := form.end(f, f.open(), f.path("a"))
			e.put("first")
			n := len(f.children(f.path("a")))
			var call *pending[[]recipes.ElementID]
			e.replyLost(func() {
				call = start(f, func() ([]recipes.ElementID, error) { return e.many(f.ctx, []byte("second"), []byte("third")) })
			}, func() { f.awaitChildren(f.path("a"), n+2) })
			ids := call.must(f)
			e.holds(3)
			for i, want := range []string{"second", "third"} {
				data, _ := f.read(f.path("a", string(ids[i])))
				f.failIf(data != want, "%s has data %q; want %q", ids[i], data, want)
			}
			e.takes("first", "second", "third")
		}},
		{"put/a put whose reply is lost is not repeated after the element was taken", func(f *fixture, form queueForm) {
			e, other := form.end(f, f.open(), f.path("a")), form.end(f, f.open(), f.path("a"))
			e.put("first")
			other.takes("first")
			var call *pending[[]recipes.ElementID]
			e.replyLost(func() {
				call = start(f, func() ([]recipes.ElementID, error) { return e.many(f.ctx, []byte("second")) })
			}, func() { other.takes("second") })
			ids := call.must(f)
			f.failIf(len(ids) != 1 || ids[0] != "", "named %q; want an unknown name", ids)
			e.holds(0)
		}},
		{"put/if the reply and then the session is lost, it is ErrUnknownOutcome", func(f *fixture, form queueForm) {
			e := form.end(f, f.open(), f.path("a"))
			e.put("first")
			n := len(f.children(f.path("a")))
			f.relay(e.s).HoldReplies()
			call := startErr(f, func() error {
				_, err := e.many(f.ctx, []byte("second"))
				return err
			})
			f.awaitChildren(f.path("a"), n+1)
			f.expire(e.s)
			f.is(call.failure(f), recipes.ErrUnknownOutcome, recipes.ErrSessionLost)
			other := form.end(f, f.open(), f.path("a"))
			other.takes("first", "second")
		}},
		{"put/data that is too large is ErrTooLarge, and nothing is put", func(f *fixture, form queueForm) {
			e := form.end(f, f.open(), f.path("a"))
			f.is(errOf(e.many(f.ctx, make([]byte, 1<<20))), recipes.ErrTooLarge)
			e.holds(0)
			f.must(e.s.Err())
		}},
		{"put/ephemeral elements are deleted with their session", func(f *fixture, form queueForm) {
			s := f.open()
			e := form.end(f, s, f.path("a"), recipes.QueueConfig{Ephemeral: true})
			id := e.put("one", "two")[1]
			_, stat := f.read(f.path("a", string(id)))
			f.failIf(stat.EphemeralOwner != s.ID(), "owner %#x; want %#x", stat.EphemeralOwner, s.ID())
			other := form.end(f, f.open(), f.path("a"))
			d := other.receives("one", 1)
			f.must(s.Close(f.ctx))
			other.holds(0)
			f.is(d.Ack(f.ctx), recipes.ErrNotHeld) // the element was deleted with its session
			f.awaitChildren(f.path("a", "claims"), 0)
		}},
		{"put/a bad path or configuration is ErrInvalid", queueInvalid},
		{"bounded/a put waits while the queue is full", func(f *fixture, form queueForm) {
			cfg := recipes.QueueConfig{Capacity: 2}
			full, taker := form.end(f, f.open(), f.path("a"), cfg), form.end(f, f.open(), f.path("a"), cfg)
			full.put("1", "2")
			before := listings(f.stats(full.s))
			call := startErr(f, func() error { _, err := full.many(f.ctx, []byte("3")); return err })
			f.reach(full.s, func(c recipes.Stats) bool { return listings(c) >= before+2 })
			call.blocked(f)
			form.putUntilEnd(f, f.path("a"), cfg)
			taker.takes("1")
			call.must(f)
			taker.takes("2", "3")
			taker.holds(0)
		}},
		// The put waits for room. The error says that nothing was put.
		{"bounded/a put that is cancelled while it waits puts nothing", func(f *fixture, form queueForm) {
			cfg := recipes.QueueConfig{Capacity: 1}
			full, taker := form.end(f, f.open(), f.path("a"), cfg), form.end(f, f.open(), f.path("a"), cfg)
			full.put("1")
			before := listings(f.stats(full.s))
			ctx, cancel := context.WithCancel(f.ctx)
			defer cancel()
			call := startErr(f, func() error { _, err := full.many(ctx, []byte("never")); return err })
			f.reach(full.s, func(c recipes.Stats) bool { return listings(c) >= before+2 })
			cancel()
			err := call.failure(f)
			f.is(err, context.Canceled)
			f.isNot(err, recipes.ErrUnknownOutcome)
			taker.takes("1")
			full.put("2") // a cancelled element that was put would be ahead of it
			taker.takes("2")
			taker.holds(0)
		}},
		{"bounded/many producers do not exceed the capacity", func(f *fixture, form queueForm) {
			const capacity, each, producers = 3, 4, 4
			cfg := recipes.QueueConfig{Capacity: capacity}
			var calls []*pending[struct{}]
			for i := range producers {
				e := form.end(f, f.open(), f.path("a"), cfg)
				calls = append(calls, startErr(f, func() error {
					for j := range each {
						if _, err := e.many(f.ctx, fmt.Appendf(nil, "%d-%d", i, j)); err != nil {
							return err
						}
					}
					return nil
				}))
			}
			taker := form.end(f, f.open(), f.path("a"), cfg)
			seen := map[string]bool{}
			for range each * producers {
				n, err := taker.Len(f.ctx)
				f.failIf(err != nil || n > capacity, "length %d, %v; the capacity is %d", n, err, capacity)
				got := get(f, taker.Take)
				seen[string(got.Data)] = true
			}
			for _, c := range calls {
				c.must(f)
			}
			f.failIf(len(seen) != each*producers, "%d different elements; want %d", len(seen), each*producers)
		}},
		{"bounded/claimed elements count toward the capacity", func(f *fixture, form queueForm) {
			cfg := recipes.QueueConfig{Capacity: 1}
			e := form.end(f, f.open(), f.path("a"), cfg)
			e.put("1")
			d := e.receives("1", 1)
			form.putUntilEnd(f, f.path("a"), cfg)
			f.must(d.Ack(f.ctx))
			e.put("2")
		}},
	}
}

// replyLost makes a call, waits until done has seen its effect, and drops the reply.
func (e end) replyLost(call func(), done func()) {
	e.f.relay(e.s).HoldReplies()
	call()
	done()
	e.f.relay(e.s).Drop()
	e.f.restore(e.s)
}

// putUntilEnd puts into a full queue until its context ends, and then closes the session. A plugin
// can notice the end of a context late; after the close, no put is pending.
func (form queueForm) putUntilEnd(f *fixture, path string, cfg recipes.QueueConfig) {
	f.Helper()
	s := f.open()
	f.is(errOf(form.end(f, s, path, cfg).many(f.briefly(), []byte("never"))), context.DeadlineExceeded)
	f.must(s.Close(f.ctx))
}
