package recipestest

import (
	"context"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/recipes"
)

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
			// Through a plugin, Take receives and acknowledges. The first claim creates the parent of the
			// claims, so the first Take lists more often than once.
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
			// The same for deliveries.
			f.puts(other, 2, "urgent too")
			d := get(f, q.Receive)
			f.delivered(d, "urgent too", 1)
			f.must(d.Ack(f.ctx))
			f.next(q, 5, "3")
		}},
		{"priority queue/order/a priority out of range is ErrInvalid", func(f *fixture) {
			q := f.priorities(f.open())
			for _, p := range []int{-1, recipes.MaxPriority + 1} {
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
