package recipestest

import (
	"time"

	"github.com/zkrecipes/zkrecipes/recipes"
)

func priorityTry(f *fixture) {
	s := f.open()
	h := f.priorityHeld(s, recipes.Reading, at(5))
	r := get(f, f.priority(s, at(9)).TryRead)
	f.is(errOf(f.priority(s, at(0)).TryWrite(f.ctx)), recipes.ErrContended)
	f.awaitChildren(f.path("a"), 2)
	f.must(h.Release(f.ctx))
	f.must(r.Release(f.ctx))
	get(f, f.priority(s, at(0)).TryWrite)
}

// A waiter watches its own znode, so it notices the deletion while another contender holds.
func priorityRemoved(f *fixture) {
	h := f.priorityHeld(f.open(), recipes.Writing)
	w := f.priorityWaits(f.open(), recipes.Writing)
	f.remove(w.place.Znode)
	f.is(w.failure(f), recipes.ErrRemoved)
	h.Done()
	f.remove(h.Znode())
	f.lost(h, recipes.ErrRemoved)
}

func priorityReplyLost(f *fixture) {
	h := f.priorityHeld(f.open(), recipes.Writing)
	s := f.open()
	w := f.priorityWaits(s, recipes.Writing)
	f.relay(s).HoldReplies()
	f.must(h.Release(f.ctx))
	f.lose(s)
	g := w.must(f)
	f.held(g)
	if names := f.children(f.path("a")); len(names) != 1 || f.path("a", names[0]) != g.Znode() {
		f.Errorf("granted as %s; the wait queue is %v", g.Znode(), names)
	}
	f.must(g.Release(f.ctx))
}

func priorityContenders(f *fixture) {
	s := f.open()
	l := f.priority(s)
	if in, err := l.Contenders(f.ctx); err != nil || len(in) != 0 {
		f.Errorf("an empty wait queue: %v, %v", in, err)
	}
	h := f.priorityHeld(s, recipes.Reading, at(50), func(c *recipes.PriorityLockConfig) {
		c.Data, c.Revocable, c.Grace = []byte("me"), true, time.Second
	})
	f.priorityWaits(s, recipes.Writing, at(60))
	f.priorityWaits(s, recipes.Writing, at(40))
	in := get(f, l.Contenders)
	if len(in) != 3 {
		f.Fatalf("the wait queue is %+v", in)
	}
	c := in[0]
	if !c.Holds || c.Znode != h.Znode() || c.Token != h.Token() || c.Priority != 50 || c.Mode != recipes.Reading ||
		string(c.Data) != "me" || !c.Revocable || c.Grace != time.Second || c.Revoked || c.Successor || c.SessionID != s.ID() {
		f.Errorf("the holder is listed as %+v", c)
	}
	for i, want := range []int{40, 60} {
		if c := in[i+1]; c.Holds || c.Priority != want || c.Mode != recipes.Writing || c.Revocable {
			f.Errorf("waiter %d is listed as %+v", i, c)
		}
	}
}

func priorityForeign(f *fixture) {
	f.create(f.path("a"), "other data")
	f.is(errOf(f.priority(f.open()).AcquireRead(f.ctx)), recipes.ErrMismatch)
	f.awaitChildren(f.path("a"), 0)
	if data, stat := f.read(f.path("a")); data != "other data" || stat.Version != 0 {
		f.Errorf("the path has data %q", data)
	}
}

func priorityLockInvalid(f *fixture) {
	s := f.open()
	for _, cfg := range []recipes.PriorityLockConfig{
		{Priority: -1}, {Priority: 100}, {Grace: time.Second}, {Strategy: "no such"},
	} {
		f.is(errOf(s.PriorityLock(f.path("a"), cfg)), recipes.ErrInvalid)
	}
	f.is(errOf(s.PriorityLock("relative", recipes.PriorityLockConfig{})), recipes.ErrInvalid)
}
