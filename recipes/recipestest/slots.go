package recipestest

import (
	"context"
	"regexp"
	"slices"
	"strconv"
	"sync"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// slotsTests are what slots promise: what a semaphore does, and the numbers.
func slotsTests() []test {
	one := kind{name: "one slot", marker: "lease-", strategy: recipes.Predecessor,
		take: func(s recipes.Client, path string, o options) (line, error) {
			m, err := s.Slots(path, recipes.SemaphoreConfig{Permits: 1, Strategy: o.strategy, Data: []byte(o.data), Joined: o.joined})
			return slotsLine{m}, err
		}}
	likeALock := slices.DeleteFunc(lineTests(), func(t kindTest) bool {
		return slices.Contains([]string{ // these find that a grant makes another znode
			"the first is granted, with its znode as documented",
			"joined tells the place, once and before the return",
			"a lost connection keeps the place in line",
			"contenders are listed in order",
			"a handoff costs what the strategy says",
		}, t.name)
	})
	return append(forKinds([]kind{one}, likeALock), []test{
		{"the lowest number that is free is given", slotsLowest},
		{"the znode has the number, and the place of the znode that waited", slotsZnode},
		{"of many no two have the same number, and the tokens of a number grow", slotsUnderLoad},
		{"a lost connection keeps the place in line", slotsKeepTheirPlace},
		{"a znode that is deleted frees its number, and its holder writes no more", slotsRemoved},
		{"a session that ends frees its number", slotsOfALostSession},
		{"try/with a free permit it is granted, without one it is refused", slotsTry},
		{"a semaphore at the path shares the permits", slotsAndSemaphore},
		{"another number of permits is ErrMismatch, and the line is left", slotsMismatch},
		{"less than one permit, and a dialect, are ErrInvalid", slotsInvalid},
	}...)
}

type slotsLine struct{ recipes.Slots }

func (l slotsLine) Enter(ctx context.Context) (grant, error) {
	h, err := l.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	return lockGrant{h}, nil
}

func (f *fixture) slots(s recipes.Client, permits int, joined ...func(recipes.Place)) recipes.Slots {
	f.Helper()
	cfg := recipes.SemaphoreConfig{Permits: permits, Data: []byte("who I am")}
	if len(joined) > 0 {
		cfg.Joined = joined[0]
	}
	m, err := s.Slots(f.path("a"), cfg)
	f.must(err)
	return m
}

// slot acquires a permit, and checks its number.
func (f *fixture) slot(s recipes.Client, permits, want int) recipes.SlotHold {
	f.Helper()
	h, err := f.slots(s, permits).Acquire(f.ctx)
	f.must(err)
	f.isSlot(h, want)
	return h
}

func (f *fixture) isSlot(h recipes.SlotHold, want int) {
	f.Helper()
	if h.Slot() != want {
		f.Errorf("the number is %d; want %d", h.Slot(), want)
	}
	f.held(h)
	f.must(h.Write(f.ctx))
}

// slotWaits has a contender wait for a permit.
func (f *fixture) slotWaits(s recipes.Client, permits int) (*pending[recipes.SlotHold], recipes.Place) {
	f.Helper()
	joined := make(chan recipes.Place, 1)
	m := f.slots(s, permits, func(p recipes.Place) { joined <- p })
	w := start(f, func() (recipes.SlotHold, error) { return m.Acquire(f.ctx) })
	return w, receive(f, joined, "joining the line")
}

func slotsLowest(f *fixture) {
	s := f.open()
	var holds []recipes.SlotHold
	for want := range 3 {
		holds = append(holds, f.slot(f.open(), 3, want))
	}
	waits, _ := f.slotWaits(s, 3)
	waits.blocked(f)
	f.must(holds[1].Release(f.ctx))
	f.isSlot(waits.value1(f), 1)
	f.must(holds[2].Release(f.ctx))
	f.must(holds[0].Release(f.ctx))
	f.slot(s, 3, 0)
	f.slot(s, 3, 2) // of one session, too
	f.awaitChildren(f.path("a"), 3)
}

func slotsZnode(f *fixture) {
	s := f.open()
	joined := make(chan recipes.Place, 1)
	f.slot(s, 2, 0)
	h, err := f.slots(s, 2, func(p recipes.Place) { joined <- p }).Acquire(f.ctx)
	f.must(err)
	place := receive(f, joined, "the place")
	if place.Position != 1 {
		f.Errorf("joined at %d; want 1", place.Position)
	}
	parts := regexp.MustCompile(`^(.*/_c_` + guid + `-)slot-1-(lease-[0-9]{10})$`).FindStringSubmatch(h.Znode())
	if parts == nil || parts[1]+parts[2] != place.Znode {
		f.Fatalf("granted as %s; joined as %s", h.Znode(), place.Znode)
	}
	data, stat := f.read(h.Znode())
	if data != "who I am" || stat.EphemeralOwner != s.ID() || stat.Czxid != int64(h.Token()) {
		f.Errorf("token %d; the znode has %q, %+v", h.Token(), data, stat)
	}
	line, err := f.slots(f.open(), 2).Contenders(f.ctx)
	f.must(err)
	if len(line) != 2 || line[1].Znode != h.Znode() || line[1].Token != h.Token() || !line[1].Holds || line[1].Kind != recipes.KindSemaphore {
		f.Errorf("in line: %+v", line)
	}
	if data, _ := f.read(f.path("a")); data != "permits=2" {
		f.Errorf("the path holds %q", data)
	}
}

func slotsUnderLoad(f *fixture) {
	const permits, contenders, turns = 3, 6, 8
	f.create(f.path("a"), "")
	var mu sync.Mutex
	var inside [permits]bool
	var newest [permits]recipes.Token
	swap := func(h recipes.SlotHold, in bool) {
		mu.Lock()
		defer mu.Unlock()
		if in == inside[h.Slot()] || in && h.Token() <= newest[h.Slot()] {
			f.Errorf("number %d with token %d: held before is %v, with token %d", h.Slot(), h.Token(), inside[h.Slot()], newest[h.Slot()])
		}
		inside[h.Slot()], newest[h.Slot()] = in, h.Token()
	}
	var all []*pending[struct{}]
	for range contenders {
		m := f.slots(f.open(), permits)
		all = append(all, startErr(f, func() error {
			for range turns {
				h, err := m.Acquire(f.ctx)
				if err != nil {
					return err
				}
				swap(h, true)
				err = h.Write(f.ctx)
				swap(h, false)
				if err != nil {
					return err
				}
				if err := h.Release(f.ctx); err != nil {
					return err
				}
			}
			return nil
		}))
	}
	for _, c := range all {
		c.value1(f)
	}
	f.awaitChildren(f.path("a"), 0)
}

func slotsKeepTheirPlace(f *fixture) {
	s, other := f.open(), f.open()
	h := f.slot(other, 1, 0)
	first, place := f.slotWaits(s, 1)
	second, _ := f.slotWaits(other, 1)
	f.reconnect(s)
	f.must(h.Release(f.ctx))
	again := first.value1(f)
	f.isSlot(again, 0)
	if name := place.Znode[len(place.Znode)-10:]; again.Znode()[len(again.Znode())-10:] != name {
		f.Errorf("granted as %s; joined as %s", again.Znode(), place.Znode)
	}
	second.blocked(f)
	f.must(again.Release(f.ctx))
	f.isSlot(second.value1(f), 0)
}

func slotsRemoved(f *fixture) {
	for i, told := range []bool{true, false} { // without Done only a write finds out
		s := f.open()
		h, err := s.Slots(f.path(strconv.Itoa(i)), recipes.SemaphoreConfig{Permits: 2})
		f.must(err)
		late, err := h.Acquire(f.ctx)
		f.must(err)
		if told {
			late.Done()
		}
		f.must(f.outside.Delete(late.Znode(), -1))
		if told {
			f.lost(late, recipes.ErrRemoved)
		}
		next, err := h.Acquire(f.ctx)
		f.must(err)
		f.isSlot(next, 0)
		f.is(late.Write(f.ctx), recipes.ErrNotHeld, recipes.ErrRemoved)
		f.is(late.Release(f.ctx), recipes.ErrNotHeld)
		f.isSlot(next, 0)
	}
}

func slotsOfALostSession(f *fixture) {
	s := f.open()
	h := f.slot(s, 1, 0)
	waits, _ := f.slotWaits(f.open(), 1)
	f.must(s.Close(f.ctx))
	f.is(h.Write(f.ctx), recipes.ErrNotHeld)
	f.isSlot(waits.value1(f), 0)
}

func slotsTry(f *fixture) {
	m := f.slots(f.open(), 2)
	a, err := m.TryAcquire(f.ctx)
	f.must(err)
	b, err := m.TryAcquire(f.ctx)
	f.must(err)
	f.isSlot(b, 1)
	_, err = m.TryAcquire(f.ctx)
	f.is(err, recipes.ErrContended)
	f.awaitChildren(f.path("a"), 2)
	f.must(a.Release(f.ctx))
	c, err := m.TryAcquire(f.ctx)
	f.must(err)
	f.isSlot(c, 0)
}

func slotsAndSemaphore(f *fixture) {
	s := f.open()
	p := f.permit(f.open(), f.path("a"), 2)
	h := f.slot(s, 2, 0)
	waits, _ := f.slotWaits(s, 2)
	waits.blocked(f)
	f.must(p.Release(f.ctx))
	f.isSlot(waits.value1(f), 1)
	permit := f.permitWaits(f.open(), f.path("a"), 2)
	f.must(h.Release(f.ctx))
	permit.value1(f)
}

func slotsMismatch(f *fixture) {
	h := f.slot(f.open(), 2, 0)
	_, err := f.slots(f.open(), 3).Acquire(f.ctx)
	f.is(err, recipes.ErrMismatch)
	f.awaitChildren(f.path("a"), 1)
	f.must(h.Release(f.ctx))
	f.slot(f.open(), 3, 0) // when nobody is in line
}

func slotsInvalid(f *fixture) {
	s := f.open()
	for _, cfg := range []recipes.SemaphoreConfig{{}, {Permits: -1}, {Permits: 1, Dialect: recipes.Curator}, {Permits: 1, Dialect: recipes.Kazoo}, {Permits: 1, Strategy: "none"}} {
		_, err := s.Slots(f.path("a"), cfg)
		f.is(err, recipes.ErrInvalid)
	}
	_, err := s.Slots("a", recipes.SemaphoreConfig{Permits: 1})
	f.is(err, recipes.ErrInvalid)
}
