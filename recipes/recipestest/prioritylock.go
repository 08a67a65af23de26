package recipestest

import (
	"context"
	"regexp"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// priorityTests are what a priority lock promises.
func priorityTests() []test {
	return []test{
		{"znodes tell priority, and who holds", priorityNames},
		{"readers share, writers are alone", priorityModes},
		{"a higher priority goes before lower ones that wait, whenever it came", priorityLockOrder},
		{"within a priority the order is that of joining", priorityTies},
		{"a reader waits for better writers only", priorityReader},
		{"a holder is not disturbed by a higher priority", priorityHolder},
		{"tokens grow with every grant", priorityTokens},
		{"of many, writers are alone", priorityUnderLoad},
		{"try/refused by contenders ahead, and the line is left", priorityTry},
		{"cancelling leaves the line", priorityCancel},
		{"a waiter whose znode was removed gets ErrRemoved", priorityRemoved},
		{"a departure during a lost connection is not missed", prioritySevered},
		{"a lost reply to the claim leaves one grant", priorityReplyLost},
		{"the end of a session is the end of its hold", priorityExpired},
		{"a release that the server refuses can be tried again", priorityReleaseRefused},
		{"contenders are told in order", priorityContenders},
		{"a path that holds something else is ErrMismatch", priorityForeign},
		{"a bad priority is ErrInvalid", priorityLockInvalid},
		{"ask/holders of lower priority are asked, others are not", priorityAsk},
		{"ask/a holder that is not revocable is left alone", priorityAskNot},
		{"revoke/a waiter takes the request along", priorityRevokeWaiter},
		{"revoke/a holder is asked by the name that it waited with", priorityRevokeByOldName},
		{"revoke/one that is not revocable is left alone", priorityRevokeNotAllowed},
		{"revoke/forced takes the hold, and writes are refused", priorityForced},
		{"hand-off/the successor goes before better priorities", handOffSuccessor},
		{"hand-off/a successor that leaves holds nobody back", handOffLeaves},
		{"hand-off/only a waiter can be the successor", handOffNobody},
		{"hand-off/there is one successor at a time", handOffOnce},
		{"hand-off/a lost hold cannot be handed off", handOffLost},
		{"hand-off/ends the hold", handOffEnds},
	}
}

func at(priority int) func(*recipes.PriorityLockConfig) {
	return func(c *recipes.PriorityLockConfig) { c.Priority = priority }
}

func (f *fixture) priority(s recipes.Recipes, o ...func(*recipes.PriorityLockConfig)) recipes.PriorityLock {
	f.Helper()
	var cfg recipes.PriorityLockConfig
	for _, change := range o {
		change(&cfg)
	}
	l, err := s.PriorityLock(f.path("a"), cfg)
	f.must(err)
	return l
}

func (f *fixture) priorityHeld(s recipes.Recipes, mode recipes.Mode, o ...func(*recipes.PriorityLockConfig)) recipes.PriorityHold {
	f.Helper()
	acquire := f.priority(s, o...).AcquireWrite
	if mode == recipes.Reading {
		acquire = f.priority(s, o...).AcquireRead
	}
	h, err := acquire(f.ctx)
	f.must(err)
	return h
}

type priorityWaiter struct {
	*pending[recipes.PriorityHold]
	place  recipes.Place
	cancel context.CancelFunc
}

func (f *fixture) priorityWaits(s recipes.Recipes, mode recipes.Mode, o ...func(*recipes.PriorityLockConfig)) *priorityWaiter {
	f.Helper()
	joined := make(chan recipes.Place, 1)
	l := f.priority(s, append(o, func(c *recipes.PriorityLockConfig) { c.Joined = func(p recipes.Place) { joined <- p } })...)
	ctx, cancel := context.WithCancel(f.ctx)
	w := &priorityWaiter{cancel: cancel}
	w.pending = start(f, func() (recipes.PriorityHold, error) {
		if mode == recipes.Reading {
			return l.AcquireRead(ctx)
		}
		return l.AcquireWrite(ctx)
	})
	f.Cleanup(cancel)
	w.place = receive(f, joined, "joining the line")
	return w
}

func priorityReleaseRefused(f *fixture) {
	h := f.priorityHeld(f.open(), recipes.Writing)
	next := f.priorityWaits(f.open(), recipes.Reading)
	f.acl(f.path("a"), zk.PermRead|zk.PermAdmin)
	for range 2 {
		f.is(h.Release(f.ctx), recipes.ErrAccessDenied)
		f.lost(h, recipes.ErrReleased)
		next.blocked(f)
	}
	f.acl(f.path("a"), zk.PermAll)
	for range 2 {
		f.must(h.Release(f.ctx))
	}
	f.held(next.value1(f))
}

func priorityNames(f *fixture) {
	s := f.open()
	h := f.priorityHeld(s, recipes.Writing, at(7))
	w := f.priorityWaits(s, recipes.Reading, at(42))
	for znode, marker := range map[string]string{h.Znode(): "writing-07-", w.place.Znode: "read-42-"} {
		name := strings.TrimPrefix(znode, f.path("a")+"/")
		if want := `^_c_` + guid + `-` + marker + `[0-9]{10}$`; !regexp.MustCompile(want).MatchString(name) {
			f.Errorf("znode %s; want its name like %s", znode, want)
		}
	}
	_, stat := f.read(h.Znode())
	if int64(h.Token()) != stat.Czxid || stat.EphemeralOwner != s.ID() || h.Mode() != recipes.Writing {
		f.Errorf("%s: token %d, mode %s; its record is %+v", h.Znode(), h.Token(), h.Mode(), stat)
	}
	f.must(h.Release(f.ctx))
	f.must(w.value1(f).Release(f.ctx))
	f.awaitChildren(f.path("a"), 0)
}

func priorityModes(f *fixture) {
	s := f.open()
	a, b := f.priorityHeld(s, recipes.Reading), f.priorityHeld(f.open(), recipes.Reading, at(9))
	w := f.priorityWaits(f.open(), recipes.Writing)
	r := f.priorityWaits(f.open(), recipes.Reading)
	f.must(a.Release(f.ctx))
	w.blocked(f)
	f.must(b.Release(f.ctx))
	h := w.value1(f)
	r.blocked(f)
	f.must(h.Write(f.ctx))
	f.must(h.Release(f.ctx))
	r.value1(f)
}

func priorityLockOrder(f *fixture) {
	h := f.priorityHeld(f.open(), recipes.Writing, at(50))
	low := f.priorityWaits(f.open(), recipes.Writing, at(60))
	middle := f.priorityWaits(f.open(), recipes.Writing, at(30))
	high := f.priorityWaits(f.open(), recipes.Writing, at(10))
	if high.place.Position != 1 || middle.place.Position != 1 || low.place.Position != 1 {
		f.Errorf("joined at %d, %d, %d; want each right behind the holder", low.place.Position, middle.place.Position, high.place.Position)
	}
	for _, next := range []*priorityWaiter{high, middle, low} {
		f.must(h.Release(f.ctx))
		h = next.value1(f)
	}
}

func priorityTies(f *fixture) {
	h := f.priorityHeld(f.open(), recipes.Writing, at(5))
	var all []*priorityWaiter
	for range 4 {
		all = append(all, f.priorityWaits(f.open(), recipes.Writing, at(5)))
	}
	for i, next := range all {
		f.must(h.Release(f.ctx))
		h = next.value1(f)
		for _, later := range all[i+1:] {
			later.blocked(f)
		}
	}
}

func priorityReader(f *fixture) {
	s := f.open()
	h := f.priorityHeld(s, recipes.Reading, at(5))
	w := f.priorityWaits(f.open(), recipes.Writing, at(5))
	f.priorityHeld(f.open(), recipes.Reading, at(4)) // goes before the writer
	same := f.priorityWaits(f.open(), recipes.Reading, at(5))
	same.blocked(f)
	w.blocked(f)
	f.held(h)
	w.cancel()
	same.value1(f)
}

func priorityHolder(f *fixture) {
	h := f.priorityHeld(f.open(), recipes.Writing, at(99))
	w := f.priorityWaits(f.open(), recipes.Writing, at(0))
	f.must(h.Write(f.ctx))
	w.blocked(f)
	f.held(h)
	f.must(h.Release(f.ctx))
	w.value1(f)
}

func priorityTokens(f *fixture) {
	h := f.priorityHeld(f.open(), recipes.Writing, at(5))
	early := f.priorityWaits(f.open(), recipes.Writing, at(9))
	late := f.priorityWaits(f.open(), recipes.Writing, at(1))
	f.must(h.Release(f.ctx))
	first := late.value1(f)
	f.must(first.Release(f.ctx))
	second := early.value1(f)
	if !(h.Token() < first.Token() && first.Token() < second.Token()) {
		f.Errorf("tokens %d, %d, %d; want them to grow", h.Token(), first.Token(), second.Token())
	}
}

func priorityUnderLoad(f *fixture) {
	var e exclusive
	const contenders, turns = 5, 8
	f.create(f.path("a"), "")
	var all []*pending[struct{}]
	for i := range contenders {
		l := f.priority(f.open(), at(i%3))
		all = append(all, startErr(f, func() error {
			for range turns {
				h, err := l.AcquireWrite(f.ctx)
				if err != nil {
					return err
				}
				e.enter(h)
				err = h.Write(f.ctx)
				e.leave()
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
	e.check(f, contenders*turns)
	f.awaitChildren(f.path("a"), 0)
}
