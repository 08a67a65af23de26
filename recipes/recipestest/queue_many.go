package recipestest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// manyTests are those of batches.
func manyTests() []queueTest {
	return []queueTest{
		{"many/a batch is taken in order, and in one write", func(f *fixture, form queueForm) {
			e := form.end(f, f.open(), f.path("a"))
			e.put("0", "1", "2", "3", "4", "5")
			e.takes("0") // the first take creates the receipt
			for _, batch := range []struct {
				most int
				want string
			}{{2, "1 2"}, {1, "3"}, {5, "4 5"}} {
				before := f.stats(e.s).Writes
				e.takesMany(batch.most, batch.want)
				made := f.stats(e.s).Writes - before
				f.failIf(made != 1, "%d writes to take %q", made, batch.want)
			}
			e.holds(0)
		}},
		{"many/a batch waits for its first element only", func(f *fixture, form queueForm) {
			e, other := form.end(f, f.open(), f.path("a")), form.end(f, f.open(), f.path("a"))
			call := start(f, func() ([]recipes.Element, error) { return e.TakeMany(f.ctx, 10) })
			e.waits()
			call.blocked(f)
			other.put("1")
			f.sameText(texts(call.must(f)), "1")
			rcv := start(f, func() ([]recipes.Delivery, error) { return e.ReceiveMany(f.ctx, 10) })
			rcv.blocked(f)
			other.put("2")
			f.must(e.AckMany(f.ctx, rcv.must(f)...))
			f.is(errOf(e.TakeMany(f.briefly(), 10)), context.DeadlineExceeded)
			e.holds(0)
		}},
		{"many/a batch of less than one element is ErrInvalid", func(f *fixture, form queueForm) {
			e := form.end(f, f.open(), f.path("a"))
			for _, most := range []int{0, -1} {
				f.is(errOf(e.TakeMany(f.ctx, most)), recipes.ErrInvalid)
				f.is(errOf(e.ReceiveMany(f.ctx, most)), recipes.ErrInvalid)
			}
			f.must(e.AckMany(f.ctx))
		}},
		{"many/a batch that does not fit into a packet has fewer elements", func(f *fixture, form queueForm) {
			e := form.end(f, f.open(), f.path("a"))
			const n = 6
			for i := range n {
				e.put(fmt.Sprint(i) + strings.Repeat("x", 300<<10))
			}
			var got []string
			all := must.Get(e.ReceiveMany(f.ctx, n))(f)
			for _, d := range all {
				got = append(got, string(d.Element().Data[0]))
			}
			f.failIf(len(got) == 0 || len(got) == n, "received %q at once", got)
			f.must(e.AckMany(f.ctx, all...))
			for len(got) < n {
				taken := must.Get(e.TakeMany(f.ctx, n))(f)
				for _, t := range taken {
					got = append(got, string(t.Data[0]))
				}
			}
			f.failIf(!slices.IsSorted(got), "taken in the order %q", got)
		}},
		{"many/many consumers take each element once, in order", func(f *fixture, form queueForm) {
			const consumers, n = 4, 200
			producer := form.end(f, f.open(), f.path("a"))
			var data [][]byte
			for i := range n {
				data = append(data, fmt.Appendf(nil, "%03d", i))
			}
			must.Get(producer.many(f.ctx, data...))(f)
			var mu sync.Mutex
			seen := map[string]bool{}
			var calls []*pending[struct{}]
			for c := range consumers {
				e := form.end(f, f.open(), f.path("a"))
				calls = append(calls, startErr(f, func() error {
					for last := ""; ; {
						taken, err := e.batch(f.ctx, 7, c%2 == 0)
						if err != nil {
							return err
						}
						mu.Lock()
						for _, data := range taken {
							if data == "end" {
								mu.Unlock()
								return nil
							}
							if seen[data] || data <= last {
								err = fmt.Errorf("%q after %q; consumed before: %v", data, last, seen[data])
							}
							seen[data], last = true, data
						}
						mu.Unlock()
						if err != nil {
							return err
						}
					}
				}))
			}
			for len(calls) > 0 { // two of the ends can belong to one batch
				producer.put("end")
				select {
				case <-calls[0].done:
					calls[0].must(f)
					calls = calls[1:]
				default:
				}
			}
			f.failIf(len(seen) != n, "%d of %d elements were consumed", len(seen), n)
		}},
		{"many/claimed elements are left out", func(f *fixture, form queueForm) {
			e, other := form.end(f, f.open(), f.path("a")), form.end(f, f.open(), f.path("a"))
			e.put("1", "2", "3", "4")
			d := other.receives("1", 1)
			e.takesMany(2, "2 3")
			f.must(d.Return(f.ctx))
			var rest []string // elements that are already listed come before one that is returned
			for len(rest) < 2 {
				taken := must.Get(e.TakeMany(f.ctx, 5))(f)
				rest = append(rest, strings.Fields(texts(taken))...)
			}
			slices.Sort(rest)
			f.sameText(strings.Join(rest, " "), "1 4")
		}},
		{"many/deliveries of a batch are acknowledged and returned alone", func(f *fixture, form queueForm) {
			e, other := form.end(f, f.open(), f.path("a")), form.end(f, f.open(), f.path("a"))
			e.put("1", "2", "3", "4")
			all := must.Get(e.ReceiveMany(f.ctx, 3))(f)
			f.failIf(len(all) != 3, "%d deliveries", len(all))
			for i, d := range all {
				f.held(d)
				f.delivered(d, fmt.Sprint(i+1), 1)
			}
			other.takesMany(5, "4")
			f.must(all[1].Return(f.ctx))
			other.takesMany(5, "2")
			f.must(e.AckMany(f.ctx, all[0], all[2]))
			f.must(e.AckMany(f.ctx, all[0], all[2]))
			f.must(all[0].Ack(f.ctx))
			f.is(e.AckMany(f.ctx, all...), recipes.ErrReleased)
			e.holds(0)
			f.awaitChildren(f.path("a", "claims"), 0)
		}},
		{"many/a lost claim does not keep the others from being acknowledged", func(f *fixture, form queueForm) {
			e := form.end(f, f.open(), f.path("a"))
			e.put("1", "2", "3")
			all := must.Get(e.ReceiveMany(f.ctx, 3))(f)
			f.remove(all[1].Znode())
			f.is(e.AckMany(f.ctx, all...), recipes.ErrNotHeld, recipes.ErrRemoved)
			f.must(all[0].Ack(f.ctx))
			f.is(all[1].Ack(f.ctx), recipes.ErrRemoved)
			f.must(all[2].Ack(f.ctx))
			e.holds(1)
			f.must(e.receives("2", 2).Ack(f.ctx))
		}},
		{"many/deliveries of another session or queue are ErrInvalid", func(f *fixture, form queueForm) {
			s := f.open()
			e, elsewhere, other := form.end(f, s, f.path("a")), form.end(f, s, f.path("b")), form.end(f, f.open(), f.path("a"))
			e.put("1", "2")
			elsewhere.put("3")
			mine, theirs, third := e.receives("1", 1), other.receives("2", 1), elsewhere.receives("3", 1)
			f.is(e.AckMany(f.ctx, mine, theirs), recipes.ErrInvalid)
			f.is(e.AckMany(f.ctx, mine, third), recipes.ErrInvalid)
			f.held(mine)
			f.must(e.AckMany(f.ctx, mine))
			f.must(other.AckMany(f.ctx, theirs))
			f.must(elsewhere.AckMany(f.ctx, third))
		}},
		{"many/an acknowledgement whose reply is lost succeeds", func(f *fixture, form queueForm) {
			e := form.end(f, f.open(), f.path("a"))
			id := e.put("1", "2")[0]
			all := must.Get(e.ReceiveMany(f.ctx, 2))(f)
			var call *pending[struct{}]
			e.replyLost(func() {
				call = startErr(f, func() error { return e.AckMany(f.ctx, all...) })
			}, func() { f.awaitNode(f.path("a", string(id)), false) })
			call.must(f)
			e.holds(0)
		}},
		{"many/a cancelled call leaves no claims", func(f *fixture, form queueForm) {
			s := f.open()
			e := form.end(f, s, f.path("a"))
			e.put("1", "2")
			all := must.Get(e.ReceiveMany(f.ctx, 2))(f)
			for _, d := range all {
				f.must(d.Return(f.ctx))
			}
			f.relay(s).Hold()
			ctx, cancel := context.WithCancel(f.ctx)
			call := start(f, func() ([]recipes.Delivery, error) { return e.ReceiveMany(ctx, 2) })
			cancel()
			f.is(call.failure(f), context.Canceled)
			f.relay(s).Restore()
			f.awaitChildren(f.path("a", "claims"), 0)
			e.holds(2)
		}},
	}
}

// batch takes or receives elements, and returns their data.
func (e end) batch(ctx context.Context, most int, take bool) (data []string, err error) {
	if take {
		taken, err := e.TakeMany(ctx, most)
		return strings.Fields(texts(taken)), err
	}
	all, err := e.ReceiveMany(ctx, most)
	if err != nil {
		return nil, err
	}
	for _, d := range all {
		data = append(data, string(d.Element().Data))
	}
	return data, e.AckMany(ctx, all...)
}

func texts(elements []recipes.Element) string {
	var data []string
	for _, e := range elements {
		data = append(data, string(e.Data))
	}
	return strings.Join(data, " ")
}

// takesMany takes a batch and checks its data.
func (e end) takesMany(most int, want string) {
	e.f.Helper()
	got, err := e.TakeMany(e.f.ctx, most)
	e.f.must(err)
	e.f.sameText(texts(got), want)
}

func (f *fixture) sameText(got, want string) {
	f.Helper()
	f.failIf(got != want, "%q; want %q", got, want)
}
