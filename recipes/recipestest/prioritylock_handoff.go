package recipestest

import "github.com/zkrecipes/zkrecipes/recipes"

func handOffSuccessor(f *fixture) {
	h := f.priorityHeld(f.open(), recipes.Writing, at(5))
	best := f.priorityWaits(f.open(), recipes.Writing, at(0))
	second := f.priorityWaits(f.open(), recipes.Reading, at(1))
	successor := f.priorityWaits(f.open(), recipes.Writing, at(99))
	f.must(h.HandOff(f.ctx, successor.place.Znode))
	g := successor.must(f)
	best.blocked(f)
	second.blocked(f)
	if data, _ := f.read(f.path("a")); data != "" {
		f.Errorf("the path still names a successor after its grant: %q", data)
	}
	f.must(g.Release(f.ctx))
	f.must(best.must(f).Release(f.ctx))
	second.must(f)
}

func handOffLeaves(f *fixture) {
	a, b := f.priorityHeld(f.open(), recipes.Reading, at(5)), f.priorityHeld(f.open(), recipes.Reading, at(5))
	successor := f.priorityWaits(f.open(), recipes.Writing, at(99))
	best := f.priorityWaits(f.open(), recipes.Writing, at(0))
	f.must(a.HandOff(f.ctx, successor.place.Znode))
	in := get(f, f.priority(f.open()).Contenders)
	if len(in) != 3 || !in[1].Successor || in[1].Znode != successor.place.Znode {
		f.Errorf("the wait queue is %+v", in)
	}
	successor.cancel()
	successor.result(f)
	f.must(b.Release(f.ctx))
	best.must(f)
}

func handOffNoWaiter(f *fixture) {
	s := f.open()
	h := f.priorityHeld(s, recipes.Writing)
	w := f.priorityWaits(s, recipes.Writing)
	w.cancel()
	w.result(f)
	f.awaitNode(w.place.Znode, false)
	f.is(h.HandOff(f.ctx, w.place.Znode), recipes.ErrNoNode)
	for _, znode := range []string{"", f.path("a"), f.path("b", "x-write-01-0000000001"), h.Znode(), h.Znode() + "/x"} {
		f.is(h.HandOff(f.ctx, znode), recipes.ErrInvalid)
	}
	f.must(h.Write(f.ctx))
	f.held(h)
}

func handOffOnce(f *fixture) {
	a, b := f.priorityHeld(f.open(), recipes.Reading), f.priorityHeld(f.open(), recipes.Reading)
	first, second := f.priorityWaits(f.open(), recipes.Writing, at(8)), f.priorityWaits(f.open(), recipes.Writing, at(7))
	f.must(a.HandOff(f.ctx, first.place.Znode))
	f.is(b.HandOff(f.ctx, second.place.Znode), recipes.ErrContended)
	f.held(b)
	f.must(b.Release(f.ctx))
	f.must(first.must(f).Release(f.ctx))
	second.must(f)
}

func handOffLost(f *fixture) {
	s := f.open()
	h := f.priorityHeld(s, recipes.Writing)
	w := f.priorityWaits(f.open(), recipes.Writing)
	f.remove(h.Znode())
	g := w.must(f)
	next := f.priorityWaits(f.open(), recipes.Writing)
	f.is(h.HandOff(f.ctx, next.place.Znode), recipes.ErrNotHeld, recipes.ErrRemoved)
	f.held(g)
	next.blocked(f)
}

func handOffEnds(f *fixture) {
	h := f.priorityHeld(f.open(), recipes.Writing)
	w := f.priorityWaits(f.open(), recipes.Writing)
	h.Done()
	f.must(h.HandOff(f.ctx, w.place.Znode))
	f.lost(h, recipes.ErrReleased)
	f.is(h.Write(f.ctx), recipes.ErrNotHeld)
	f.is(h.HandOff(f.ctx, w.place.Znode), recipes.ErrNotHeld)
	f.held(w.must(f))
}
