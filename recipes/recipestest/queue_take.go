package recipestest

import (
	"context"
	"fmt"
	"sync"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
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
			f.restore(s)
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

// orderTests tests the differences between the two forms.
func orderTests() []test {
	return []test{
		{"queue/order/Take lists again only after the last listed element", func(f *fixture) {
			q := queueForms[0].end(f, f.open(), f.path("a"))
			other := queueForms[0].end(f, f.open(), f.path("a"))
			other.put("1", "2", "3", "4")
			before := listings(f.stats(q.s))
			q.takes("1")
			listed := listings(f.stats(q.s)) - before
			q.takes("2", "3", "4")
			again := listings(f.stats(q.s)) - before
			f.failIf(again != listed, "%d listings for four elements; want those of the first, %d", again, listed)
		}},
		{"queue/order/the two forms do not see each other's elements", func(f *fixture) {
			s := f.open()
			plain, priority := queueForms[0].end(f, s, f.path("a")), queueForms[1].end(f, s, f.path("a"))
			plain.put("plain")
			priority.put("priority")
			plain.holds(1)
			priority.holds(1)
			priority.takes("priority")
			plain.takes("plain")
		}},
		{"priority queue/order/smaller priority numbers come first, then the order of puts", func(f *fixture) {
			q := f.priorities(f.open())
			type element struct {
				priority int
				data     string
			}
			for _, e := range []element{{10, "c"}, {99, "e"}, {9, "b"}, {10, "d"}, {0, "a"}} {
				f.puts(q, e.priority, e.data)
			}
			for _, e := range []element{{0, "a"}, {9, "b"}, {10, "c"}, {10, "d"}, {99, "e"}} {
				f.next(q, e.priority, e.data)
			}
		}},
		// kazoo's queue: a cached listing delayed new items with a higher priority.
		{"priority queue/order/a new element with a higher priority comes before listed ones", func(f *fixture) {
			q, other := f.priorities(f.open()), f.priorities(f.open())
			f.puts(other, 5, "1")
			f.puts(other, 5, "2")
			f.puts(other, 5, "3")
			f.next(q, 5, "1")
			// A take changes the children, so it fires the watch of the consumer's listing. The event
			// arrives before the reply, so the next take lists again.
			f.puts(other, 1, "urgent")
			f.next(q, 1, "urgent")
			f.next(q, 5, "2")
			// The same applies to deliveries.
			f.puts(other, 2, "urgent too")
			d := get(f, q.Receive)
			f.delivered(d, "urgent too", 1)
			f.must(d.Ack(f.ctx))
			f.next(q, 5, "3")
		}},
		{"priority queue/order/a priority out of range is ErrInvalid", func(f *fixture) {
			q := f.priorities(f.open())
			for _, p := range []int{-1, recipes.LowestPriority + 1} {
				f.is(errOf(q.Put(f.ctx, p, nil)), recipes.ErrInvalid)
				f.is(errOf(q.PutMany(context.Background(), p)), recipes.ErrInvalid)
			}
		}},
	}
}

func (f *fixture) priorities(s recipes.Recipes) recipes.PriorityQueue {
	f.Helper()
	return must.Get(s.PriorityQueue(f.path("a"), recipes.QueueConfig{}))(f)
}

func (f *fixture) puts(q recipes.PriorityQueue, priority int, data string) {
	f.Helper()
	must.Get(q.Put(f.ctx, priority, []byte(data)))(f)
}

func (f *fixture) next(q recipes.PriorityQueue, priority int, data string) {
	f.Helper()
	e := get(f, q.Take)
	if string(e.Data) != data || e.Priority != priority {
		f.Errorf("took %q of priority %d; want %q of %d", e.Data, e.Priority, data, priority)
	}
}
