package recipestest

import (
	"context"
	"fmt"
	"sync"

	"github.com/zkrecipes/zkrecipes/recipes"
)

func takeTests() []queueTest {
	return []queueTest{
		{"take/many consumers take each element once, in order", func(f *fixture, form queueForm) {
			const consumers, each = 4, 8
			producer := form.end(f, f.open(), f.path("a"))
			var mu sync.Mutex
			seen := map[string]int{}
			var calls []*pending[struct{}]
			for range consumers {
				e := form.end(f, f.open(), f.path("a"))
				calls = append(calls, startErr(f, func() error {
					last := ""
					for range each {
						got, err := e.Take(f.ctx)
						if err != nil {
							return err
						}
						if string(got.ID) <= last {
							return fmt.Errorf("%s after %s", got.ID, last)
						}
						last = string(got.ID)
						mu.Lock()
						seen[string(got.Data)]++
						mu.Unlock()
					}
					return nil
				}))
			}
			for i := range consumers * each {
				producer.put(fmt.Sprint(i))
			}
			for _, c := range calls {
				c.must(f)
			}
			f.failIf(len(seen) != consumers*each, "%d of %d elements were taken", len(seen), consumers*each)
			producer.holds(0)
		}},
		{"take/a call waits for an element", func(f *fixture, form queueForm) {
			e := form.end(f, f.open(), f.path("a"))
			for _, want := range []string{"one", "two"} {
				call := start(f, func() (recipes.Element, error) { return e.Take(f.ctx) })
				e.waits()
				call.blocked(f)
				id := form.end(f, f.open(), f.path("a")).put(want)[0]
				if got := call.must(f); string(got.Data) != want || got.ID != id || got.Put.IsZero() {
					f.Errorf("took %+v; want %q of %s", got, want, id)
				}
			}
		}},
		// kazoo PR 501: a failed take blocked although items remained, and left stale "taken" znodes.
		{"take/a failed call does not block the elements", func(f *fixture, form queueForm) {
			s := f.open()
			e := form.end(f, s, f.path("a"))
			e.put("1", "2", "3")
			e.takes("1")
			f.relay(s).Hold()
			f.is(errOf(e.Receive(f.briefly())), context.DeadlineExceeded)
			f.is(errOf(e.Receive(f.ended())), context.Canceled)
			f.relay(s).Restore()
			// The claims of the failed calls are deleted in the background, so both elements remain.
			got := map[string]bool{}
			for range 2 {
				d := get(f, e.Receive)
				got[string(d.Element().Data)] = true
				f.must(d.Ack(f.ctx))
			}
			f.failIf(!got["2"] || !got["3"], "received %v", got)
			f.awaitChildren(f.path("a", "claims"), 0)
		}},
		// CURATOR-336: consumers did not learn the state of the connection.
		{"take/a lost connection is reported, and does not end a wait", func(f *fixture, form queueForm) {
			s := f.open()
			e := form.end(f, s, f.path("a"))
			events := s.Events(f.ctx)
			call := start(f, func() (recipes.Element, error) { return e.Take(f.ctx) })
			e.waits()
			f.sever(s)
			for receive(f, events, "the suspension").State != recipes.Suspended {
			}
			form.end(f, f.open(), f.path("a")).put("one")
			call.blocked(f)
			f.relay(s).Restore()
			got := call.must(f)
			f.failIf(string(got.Data) != "one", "took %q", got.Data)
		}},
		// CURATOR-308: the server deleted the parent as an empty container, and the watch never fired.
		{"take/a path that is deleted does not end a wait", func(f *fixture, form queueForm) {
			f.create(f.path("a"), "")
			e := form.end(f, f.open(), f.path("a"))
			call := start(f, func() (recipes.Element, error) { return e.Take(f.ctx) })
			e.waits()
			f.remove(f.path("a"))
			form.end(f, f.open(), f.path("a")).put("one")
			got := call.must(f)
			f.failIf(string(got.Data) != "one", "took %q", got.Data)
		}},
		{"take/the loss of the session ends a wait", func(f *fixture, form queueForm) {
			s := f.open()
			e := form.end(f, s, f.path("a"))
			take := start(f, func() (recipes.Element, error) { return e.Take(f.ctx) })
			rcv := e.receiving()
			f.must(s.Close(f.ctx))
			f.is(take.failure(f), recipes.ErrSessionLost, recipes.ErrClosed)
			f.is(rcv.failure(f), recipes.ErrSessionLost, recipes.ErrClosed)
		}},
		{"take/other children are ignored", func(f *fixture, form queueForm) {
			e := form.end(f, f.open(), f.path("a"))
			e.put("one")
			for _, name := range []string{"queue-", "queue-abc", "lock-0000000001", "queue-x5-0000000001", "aqueue-0000000001", "note"} {
				f.create(f.path("a", name), "not an element")
			}
			e.holds(1)
			e.takes("one")
			err := errOf(e.Take(f.briefly()))
			f.is(err, context.DeadlineExceeded)
			f.isNot(err, recipes.ErrUnknownOutcome)
		}},
		{"peek/the first unclaimed element is returned, and stays", func(f *fixture, form queueForm) {
			e := form.end(f, f.open(), f.path("a"))
			f.is(errOf(e.Peek(f.ctx)), recipes.ErrEmpty)
			e.holds(0)
			ids := e.put("one", "two")
			for range 2 {
				got := get(f, e.Peek)
				f.failIf(got.ID != ids[0] || string(got.Data) != "one", "peeked at %+v", got)
			}
			d := e.receives("one", 1)
			got, err := e.Peek(f.ctx)
			f.failIf(err != nil || string(got.Data) != "two", "peeked at %+v, %v; the first is claimed", got, err)
			e.takes("two")
			f.is(errOf(e.Peek(f.ctx)), recipes.ErrEmpty)
			e.holds(1)
			f.must(d.Ack(f.ctx))
			e.holds(0)
		}},
	}
}
