package recipestest

import "github.com/zkrecipes/zkrecipes/recipes"

func cohortHoldTests() []test {
	return []test{
		{"a hold that was handed on is released, and writes no more", cohortReleased},
		{"a hold whose znode is removed is lost, and those who wait join anew", cohortHoldRemoved},
		{"a loss that nobody watches for frees those who come later", cohortLossUnwatched},
		{"a path that another hand has written to ends the hold", cohortOverwritten},
		{"a handover that another hand disturbs is stamped all the same", cohortStampedAgain},
	}
}

func cohortReleased(f *fixture) {
	c := f.cohortOf(1)
	first := c.hold
	f.standing(first)
	second := c.next(f)
	f.await(first.Done(), "the end of the hold")
	f.is(first.Err(), recipes.ErrReleased)
	err := first.Write(f.ctx, recipes.Create(f.path("a", "data"), nil))
	f.is(err, recipes.ErrReleased)
	f.must(first.GiveBack(f.ctx)) // again
	if second.Znode() != first.Znode() || f.exists(f.path("a", "data")) {
		f.Errorf("%s was handed on as %s; or it wrote", first.Znode(), second.Znode())
	}
	f.standing(second)
	f.must(second.Write(f.ctx, recipes.Create(f.path("a", "data"), nil)))
	f.must(second.GiveBack(f.ctx))
}

func cohortHoldRemoved(f *fixture) {
	c := f.cohortOf(2)
	stranger := c.k.waits(f, f.open(), f.path("a"))
	f.standing(c.hold)
	f.remove(c.hold.Znode())
	f.lost(c.hold, recipes.ErrRemoved)
	other := stranger.value1(f)
	for _, w := range c.waiting {
		w.blocked(f)
	}
	f.is(c.hold.GiveBack(f.ctx), recipes.ErrRemoved)
	c.hold = other
	c.next(f)
	c.next(f)
	f.must(c.hold.GiveBack(f.ctx))
}

// cohortLossUnwatched: who waits in the cohort learns of the removal, though the
// holder never asks for it.
func cohortLossUnwatched(f *fixture) {
	c := f.cohortOf(1)
	f.remove(c.hold.Znode())
	g := c.waiting[0].value1(f)
	f.standing(g)
	f.is(c.hold.GiveBack(f.ctx), recipes.ErrRemoved)
	f.standing(g)
	f.must(g.GiveBack(f.ctx))
}

// write changes a path's data by another hand.
func (f *fixture) write(path, data string) {
	f.Helper()
	_, err := f.outside.Set(path, []byte(data), -1)
	f.must(err)
}

func cohortOverwritten(f *fixture) {
	c := f.cohortOf(1)
	data, stat := f.read(f.path("a"))
	f.write(f.path("a"), data)
	f.is(c.hold.Write(f.ctx, recipes.Create(f.path("a", "data"), nil)), recipes.ErrNotHeld)
	if f.exists(f.path("a", "data")) {
		f.Errorf("it wrote, though the version was %d", stat.Version+1)
	}
	f.lost(c.hold)
	f.isNot(c.hold.Err(), recipes.ErrRemoved, recipes.ErrReleased)
	g := c.waiting[0].value1(f)
	f.is(c.hold.GiveBack(f.ctx), recipes.ErrNotHeld)
	f.must(g.Write(f.ctx))
	f.must(g.GiveBack(f.ctx))
}

func cohortStampedAgain(f *fixture) {
	c := f.cohortOf(1)
	data, stat := f.read(f.path("a"))
	f.write(f.path("a"), data)
	last := c.hold
	if h := c.next(f); h.Token() <= last.Token() || int64(last.Token()) != stat.Mzxid {
		f.Errorf("token %d, stamped at %d, before %d", last.Token(), stat.Mzxid, h.Token())
	}
	f.must(c.hold.Write(f.ctx))
}

func cohortRefusalTests() []test {
	return []test{
		{"try/a free lock is granted", cohortTryFree},
		{"try/a cohort that holds or waits is ErrContended", cohortTryOwn},
		{"try/another session's hold is ErrContended, and the line is left", cohortTryHeld},
		{"try/one that fails leaves those who have come meanwhile", cohortTryBeside},
		{"contenders of one session that disagree are refused", cohortDisagrees},
		{"a path that says something else is refused", cohortOfAnotherPath},
		{"a bound that cannot be used is refused", cohortInvalid},
	}
}

func cohortTryFree(f *fixture) {
	s := f.open()
	l := f.cohort(s, f.path("a"), cohortLimit)
	for range 3 {
		h, err := l.TryAcquire(f.ctx)
		f.must(err)
		w := cohortKind(recipes.DefaultStrategy).waits(f, s, f.path("a"))
		f.must(h.Release(f.ctx))
		f.must(w.value1(f).GiveBack(f.ctx))
	}
}

func cohortTryOwn(f *fixture) {
	c := f.cohortOf(0)
	_, err := f.cohort(c.session, f.path("a"), cohortLimit).TryAcquire(f.ctx)
	f.is(err, recipes.ErrContended)
	s := f.open()
	w := c.k.waits(f, s, f.path("a"))
	_, err = f.cohort(s, f.path("a"), cohortLimit).TryAcquire(f.ctx)
	f.is(err, recipes.ErrContended)
	f.standing(c.hold)
	f.must(c.hold.GiveBack(f.ctx))
	f.must(w.value1(f).GiveBack(f.ctx))
}

func cohortTryHeld(f *fixture) {
	c := f.cohortOf(0)
	s := f.open()
	_, err := f.cohort(s, f.path("a"), cohortLimit).TryAcquire(f.ctx)
	f.is(err, recipes.ErrContended)
	if names := f.children(f.path("a")); len(names) != 1 {
		f.Errorf("in line stand %v; want the holder alone", names)
	}
	f.must(c.hold.GiveBack(f.ctx))
	h, err := f.cohort(s, f.path("a"), cohortLimit).TryAcquire(f.ctx)
	f.must(err)
	f.must(h.Release(f.ctx))
}

// cohortTryBeside: whichever of the two comes first.
func cohortTryBeside(f *fixture) {
	c := f.cohortOf(0)
	s := f.open()
	l := f.cohort(s, f.path("a"), cohortLimit)
	f.proxy.freeze(s.ID())
	try := start(f, func() (recipes.Hold, error) { return l.TryAcquire(f.ctx) })
	wait := start(f, func() (recipes.Hold, error) { return l.Acquire(f.ctx) })
	f.proxy.restore(s.ID())
	_, err := try.result(f)
	f.is(err, recipes.ErrContended)
	wait.blocked(f)
	f.must(c.hold.GiveBack(f.ctx))
	f.must(wait.value1(f).Release(f.ctx))
	f.awaitChildren(f.path("a"), 0)
}

func cohortDisagrees(f *fixture) {
	c := f.cohortOf(1)
	for _, limit := range []int{0, cohortLimit + 1} {
		_, err := f.cohort(c.session, f.path("a"), limit).Acquire(f.ctx)
		f.is(err, recipes.ErrMismatch)
		_, err = f.cohort(c.session, f.path("a"), limit).TryAcquire(f.ctx)
		f.is(err, recipes.ErrMismatch)
	}
	c.next(f)
	f.must(c.hold.GiveBack(f.ctx))
	h, err := f.cohort(c.session, f.path("a"), cohortLimit+1).Acquire(f.ctx)
	f.must(err)
	f.must(h.Release(f.ctx))
}

func cohortOfAnotherPath(f *fixture) {
	f.create(f.path("a"), "permits=3")
	s := f.open()
	k := cohortKind(recipes.DefaultStrategy)
	for range 2 {
		_, err := k.at(f, s, f.path("a")).Enter(f.ctx)
		f.is(err, recipes.ErrMismatch)
	}
	if data, _ := f.read(f.path("a")); data != "permits=3" {
		f.Errorf("the path holds %q", data)
	}
	f.awaitChildren(f.path("a"), 0)
	f.write(f.path("a"), "")
	f.must(k.granted(f, s, f.path("a")).GiveBack(f.ctx))
}

func cohortInvalid(f *fixture) {
	s := f.open()
	for _, limit := range []int{-1, recipes.MaxCohort + 1} {
		_, err := s.Lock(f.path("a"), recipes.LockConfig{Cohort: limit})
		f.is(err, recipes.ErrInvalid)
	}
}
