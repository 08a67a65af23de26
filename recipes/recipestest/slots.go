package recipestest

import (
	"context"
	"regexp"
	"strconv"
	"sync"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// slotsTests tests what slots promise: the promises of a semaphore, and the numbers.
func slotsTests() []test {
	return append(forKinds(slotKind.by(recipes.Predecessor), lineTests()), []test{
		{"the lowest free number is granted", func(f *fixture) {
			s := f.open()
			var holds []recipes.SlotHold
			for want := range 3 {
				holds = append(holds, f.slot(f.open(), 3, want))
			}
			waiter := f.slotWaits(s, 3)
			waiter.blocked(f)
			f.must(holds[1].Release(f.ctx))
			f.isSlot(waiter.must(f), 1)
			f.must(holds[2].Release(f.ctx))
			f.must(holds[0].Release(f.ctx))
			f.slot(s, 3, 0)
			f.slot(s, 3, 2) // one session can have a second number
			f.awaitChildren(f.path("a"), 3)
		}},
		{"the number is in the data of the znode that waited, which keeps its name", func(f *fixture) {
			s := f.open()
			joined := make(chan recipes.Place, 1)
			f.slot(s, 2, 0)
			h := get(f, f.slots(s, 2, func(p recipes.Place) { joined <- p }).Acquire)
			place := receive(f, joined, "the place")
			f.failIf(place.Position != 1, "joined at %d; want 1", place.Position)
			if !regexp.MustCompile(`^.*/_c_`+guid+`-lease-[0-9]{10}$`).MatchString(h.Znode()) || h.Znode() != place.Znode {
				f.Fatalf("granted as %s; joined as %s", h.Znode(), place.Znode)
			}
			data, stat := f.read(h.Znode())
			if data != "zkrecipes: slot=1\nwho I am" || stat.EphemeralOwner != s.ID() || stat.Mzxid != int64(h.Token()) || stat.Version != 1 {
				f.Errorf("token %d; the znode has %q, %+v", h.Token(), data, stat)
			}
			waiter := f.slotWaits(s, 2)
			line := get(f, f.slots(f.open(), 2).Contenders)
			if len(line) != 3 || line[1].Znode != h.Znode() || line[1].Token != h.Token() || !line[1].Holds || line[1].Kind != recipes.KindSemaphore {
				f.Errorf("the wait queue is %+v", line)
			}
			for i, c := range line {
				if n := c.Slot; string(c.Data) != "who I am" || i == 2 && n != nil || i < 2 && (n == nil || *n != i) {
					f.Errorf("contender %d has the number %v and the data %q", i, n, c.Data)
				}
			}
			data, parent := f.read(f.path("a"))
			f.failIf(data != "permits=2", "the path has data %q", data)
			used := (parent.Cversion + parent.NumChildren) / 2
			f.failIf(used != 3 && !f.keeper(), "%d sequence numbers are used by 3 contenders", used)
			f.must(h.Release(f.ctx))
			waiter.must(f)
		}},
		{"a number has at most one holder at a time, and its tokens grow", func(f *fixture) {
			const permits, turns = 3, 8
			f.create(f.path("a"), "")
			var contenders []line
			for range 6 {
				contenders = append(contenders, slotKind.with(f, f.open(), f.path("a"), options{Permits: permits}))
			}
			var mu sync.Mutex
			var inside [permits]bool
			var newest [permits]recipes.Token
			mark := func(g recipes.Grant, in bool) {
				mu.Lock()
				defer mu.Unlock()
				n := g.(recipes.SlotHold).Slot()
				if in == inside[n] || in && g.Token() <= newest[n] {
					f.Errorf("number %d with token %d: held before is %v, with token %d", n, g.Token(), inside[n], newest[n])
				}
				inside[n], newest[n] = in, g.Token()
			}
			f.takeTurns(contenders, turns,
				func(g recipes.Grant) { mark(g, true) }, func(g recipes.Grant) { mark(g, false) })
		}},
		{"a lost connection keeps the place in the wait queue", func(f *fixture) {
			s, other := f.open(), f.open()
			h := f.slot(other, 1, 0)
			first, second := f.slotWaits(s, 1), f.slotWaits(other, 1)
			f.sever(s)
			f.reconnect(s)
			f.must(h.Release(f.ctx))
			again := first.must(f)
			f.isSlot(again, 0)
			f.failIf(again.Znode() != first.place.Znode, "granted as %s; joined as %s", again.Znode(), first.place.Znode)
			second.blocked(f)
			f.must(again.Release(f.ctx))
			f.isSlot(second.must(f), 0)
		}},
		{"a znode that is deleted frees its number, and its holder cannot write", func(f *fixture) {
			for i, watched := range []bool{true, false} { // without Done, only a write notices the deletion
				s := f.open()
				slots := must.Get(s.Slots(f.path(strconv.Itoa(i)), recipes.SemaphoreConfig{Permits: 2}))(f)
				late := get(f, slots.Acquire)
				if watched {
					late.Done()
				}
				f.remove(late.Znode())
				if watched {
					f.lost(late, recipes.ErrRemoved)
				}
				next := get(f, slots.Acquire)
				f.isSlot(next, 0)
				f.is(late.Write(f.ctx), recipes.ErrNotHeld, recipes.ErrRemoved)
				f.is(late.Release(f.ctx), recipes.ErrNotHeld)
				f.isSlot(next, 0)
			}
		}},
		{"a znode that is written by another client frees its number, and its holder cannot write", func(f *fixture) {
			for i, watched := range []bool{true, false} {
				s := f.open()
				slots := must.Get(s.Slots(f.path(strconv.Itoa(i)), recipes.SemaphoreConfig{Permits: 2}))(f)
				late := get(f, slots.Acquire)
				if watched {
					late.Done()
				}
				must.Get(f.outside.Set(late.Znode(), []byte("zkrecipes: slot=1\n"), -1))(f)
				if watched {
					f.lost(late, recipes.ErrRemoved)
				}
				next := get(f, slots.Acquire)
				f.isSlot(next, 0)
				f.is(late.Write(f.ctx), recipes.ErrNotHeld, recipes.ErrRemoved)
				f.is(late.Release(f.ctx), recipes.ErrNotHeld)
				f.awaitChildren(f.path(strconv.Itoa(i)), 1)
				f.isSlot(next, 0)
			}
		}},
		{"try/a free number is granted; without one, it is ErrContended", func(f *fixture) {
			m := f.slots(f.open(), 2)
			a := get(f, m.TryAcquire)
			b := get(f, m.TryAcquire)
			f.isSlot(b, 1)
			f.is(errOf(m.TryAcquire(f.ctx)), recipes.ErrContended)
			f.awaitChildren(f.path("a"), 2)
			f.must(a.Release(f.ctx))
			c := get(f, m.TryAcquire)
			f.isSlot(c, 0)
		}},
		{"a semaphore at the path shares the permits", func(f *fixture) {
			s := f.open()
			p := f.permit(f.open(), f.path("a"), 2)
			h := f.slot(s, 2, 0)
			waiter := f.slotWaits(s, 2)
			waiter.blocked(f)
			f.must(p.Release(f.ctx))
			f.isSlot(waiter.must(f), 1)
			permit := f.permitWaits(f.open(), f.path("a"), 2)
			f.must(h.Release(f.ctx))
			permit.must(f)
		}},
		{"another number of permits is ErrMismatch, and the contender leaves", func(f *fixture) {
			h := f.slot(f.open(), 2, 0)
			f.is(errOf(f.slots(f.open(), 3).Acquire(f.ctx)), recipes.ErrMismatch)
			f.awaitChildren(f.path("a"), 1)
			f.must(h.Release(f.ctx))
			f.slot(f.open(), 3, 0) // the path has no contender
		}},
		{"a bad path, strategy or number of permits, or a dialect, is ErrInvalid", func(f *fixture) {
			s := f.open()
			for _, cfg := range []recipes.SemaphoreConfig{{}, {Permits: -1}, {Permits: 1, Dialect: recipes.Curator}, {Permits: 1, Dialect: recipes.Kazoo}, {Permits: 1, Strategy: "none"}} {
				f.is(errOf(s.Slots(f.path("a"), cfg)), recipes.ErrInvalid)
			}
			f.is(errOf(s.Slots("a", recipes.SemaphoreConfig{Permits: 1})), recipes.ErrInvalid)
		}},
	}...)
}

func (f *fixture) slots(s recipes.Client, permits int, joined ...func(recipes.Place)) recipes.Slots {
	f.Helper()
	cfg := recipes.SemaphoreConfig{Permits: permits, Data: []byte("who I am")}
	if len(joined) > 0 {
		cfg.Joined = joined[0]
	}
	return must.Get(s.Slots(f.path("a"), cfg))(f)
}

// slot acquires a permit and checks its number.
func (f *fixture) slot(s recipes.Client, permits, want int) recipes.SlotHold {
	f.Helper()
	h := get(f, f.slots(s, permits).Acquire)
	f.isSlot(h, want)
	return h
}

func (f *fixture) isSlot(h recipes.SlotHold, want int) {
	f.Helper()
	f.failIf(h.Slot() != want, "the number is %d; want %d", h.Slot(), want)
	f.held(h)
	f.must(h.Write(f.ctx))
}

func (f *fixture) slotWaits(s recipes.Client, permits int) *waitingCall[recipes.SlotHold] {
	f.Helper()
	return waits(f, func(joined func(recipes.Place)) func(context.Context) (recipes.SlotHold, error) {
		return f.slots(s, permits, joined).Acquire
	})
}
