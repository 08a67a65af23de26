package recipestest

import (
	"context"
	"regexp"
	"strings"
	"time"

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
		{"who holds is not disturbed by a higher priority", priorityHolder},
		{"tokens grow with every grant", priorityTokens},
		{"of many, writers are alone", priorityUnderLoad},
		{"try/refused by who is ahead, and the line is left", priorityTry},
		{"cancelling leaves the line", priorityCancel},
		{"a waiter whose znode was removed gets ErrRemoved", priorityRemoved},
		{"a departure during a lost connection is not missed", prioritySevered},
		{"a lost reply to the claim leaves one grant", priorityReplyLost},
		{"the end of a session is the end of its hold", priorityExpired},
		{"contenders are told in order", priorityContenders},
		{"a path that holds something else is ErrMismatch", priorityForeign},
		{"shared lock and priority lock at one path do not meet", priorityBesideShared},
		{"a bad priority is ErrInvalid", priorityLockInvalid},
		{"ask/holders of lower priority are asked, others are not", priorityAsk},
		{"ask/who is not revocable is left alone", priorityAskNot},
		{"revoke/a waiter takes the request along", priorityRevokeWaiter},
		{"revoke/forced takes the hold, and writes are refused", priorityForced},
		{"hand-off/the heir goes before better priorities", handOffHeir},
		{"hand-off/an heir that leaves holds nobody back", handOffLeaves},
		{"hand-off/nobody who does not wait can be the heir", handOffNobody},
		{"hand-off/there is one heir at a time", handOffOnce},
		{"hand-off/a lost hold cannot be handed off", handOffLost},
		{"hand-off/ends the hold", handOffEnds},
	}
}

func at(priority int) func(*recipes.PriorityLockConfig) {
	return func(c *recipes.PriorityLockConfig) { c.Priority = priority }
}

func (f *fixture) priority(s recipes.Session, o ...func(*recipes.PriorityLockConfig)) recipes.PriorityLock {
	f.Helper()
	var cfg recipes.PriorityLockConfig
	for _, change := range o {
		change(&cfg)
	}
	l, err := s.PriorityLock(f.path("a"), cfg)
	f.must(err)
	return l
}

func (f *fixture) priorityHeld(s recipes.Session, mode recipes.Mode, o ...func(*recipes.PriorityLockConfig)) recipes.PriorityHold {
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

func (f *fixture) priorityWaits(s recipes.Session, mode recipes.Mode, o ...func(*recipes.PriorityLockConfig)) *priorityWaiter {
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
	f.standing(h)
	w.cancel()
	same.value1(f)
}

func priorityHolder(f *fixture) {
	h := f.priorityHeld(f.open(), recipes.Writing, at(99))
	w := f.priorityWaits(f.open(), recipes.Writing, at(0))
	f.must(h.Write(f.ctx))
	w.blocked(f)
	f.standing(h)
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

func priorityTry(f *fixture) {
	s := f.open()
	h := f.priorityHeld(s, recipes.Reading, at(5))
	r, err := f.priority(s, at(9)).TryRead(f.ctx)
	f.must(err)
	_, err = f.priority(s, at(0)).TryWrite(f.ctx)
	f.is(err, recipes.ErrContended)
	f.awaitChildren(f.path("a"), 2)
	f.must(h.Release(f.ctx))
	f.must(r.Release(f.ctx))
	_, err = f.priority(s, at(0)).TryWrite(f.ctx)
	f.must(err)
}

func priorityCancel(f *fixture) {
	s := f.open()
	h := f.priorityHeld(s, recipes.Writing)
	w, next := f.priorityWaits(s, recipes.Writing), f.priorityWaits(f.open(), recipes.Writing)
	w.cancel()
	_, err := w.result(f)
	f.is(err, context.Canceled)
	f.awaitNode(w.place.Znode, false)
	f.must(h.Release(f.ctx))
	f.must(next.value1(f).Release(f.ctx))
	f.awaitChildren(f.path("a"), 0)
}

// A waiter watches its own znode: it learns at once.
func priorityRemoved(f *fixture) {
	h := f.priorityHeld(f.open(), recipes.Writing)
	w := f.priorityWaits(f.open(), recipes.Writing)
	f.remove(w.place.Znode)
	_, err := w.result(f)
	f.is(err, recipes.ErrRemoved)
	h.Lost()
	f.remove(h.Znode())
	f.lost(h, recipes.ErrRemoved)
}

func prioritySevered(f *fixture) {
	h := f.priorityHeld(f.open(), recipes.Writing)
	s := f.open()
	w := f.priorityWaits(s, recipes.Writing)
	f.sever(s)
	f.must(h.Release(f.ctx))
	w.blocked(f)
	f.proxy.restore(s.ID())
	f.standing(w.value1(f))
}

func priorityReplyLost(f *fixture) {
	h := f.priorityHeld(f.open(), recipes.Writing)
	s := f.open()
	w := f.priorityWaits(s, recipes.Writing)
	f.proxy.holdReplies(s.ID())
	f.must(h.Release(f.ctx))
	f.proxy.cut(s.ID())
	f.proxy.restore(s.ID())
	g := w.value1(f)
	f.standing(g)
	if names := f.children(f.path("a")); len(names) != 1 || f.path("a", names[0]) != g.Znode() {
		f.Errorf("granted as %s; the line is %v", g.Znode(), names)
	}
	f.must(g.Release(f.ctx))
}

func priorityExpired(f *fixture) {
	s := f.open()
	h := f.priorityHeld(s, recipes.Writing)
	w := f.priorityWaits(f.open(), recipes.Writing, at(9))
	f.expire(s)
	f.lost(h, recipes.ErrExpired, recipes.ErrSessionLost)
	w.value1(f)
}

func priorityContenders(f *fixture) {
	s := f.open()
	l := f.priority(s)
	if in, err := l.Contenders(f.ctx); err != nil || len(in) != 0 {
		f.Errorf("an empty line: %v, %v", in, err)
	}
	h := f.priorityHeld(s, recipes.Reading, at(50), func(c *recipes.PriorityLockConfig) {
		c.Data, c.Revocable, c.Grace = []byte("me"), true, time.Second
	})
	f.priorityWaits(s, recipes.Writing, at(60))
	f.priorityWaits(s, recipes.Writing, at(40))
	in, err := l.Contenders(f.ctx)
	f.must(err)
	if len(in) != 3 {
		f.Fatalf("the line is %+v", in)
	}
	c := in[0]
	if !c.Holds || c.Znode != h.Znode() || c.Token != h.Token() || c.Priority != 50 || c.Mode != recipes.Reading ||
		string(c.Data) != "me" || !c.Revocable || c.Grace != time.Second || c.Revoked || c.Heir || c.SessionID != s.ID() {
		f.Errorf("the holder is told as %+v", c)
	}
	for i, want := range []int{40, 60} {
		if c := in[i+1]; c.Holds || c.Priority != want || c.Mode != recipes.Writing || c.Revocable {
			f.Errorf("waiter %d is told as %+v", i, c)
		}
	}
}

func priorityForeign(f *fixture) {
	f.create(f.path("a"), "somebody's")
	_, err := f.priority(f.open()).AcquireRead(f.ctx)
	f.is(err, recipes.ErrMismatch)
	f.awaitChildren(f.path("a"), 0)
	if data, stat := f.read(f.path("a")); data != "somebody's" || stat.Version != 0 {
		f.Errorf("the path holds %q", data)
	}
}

func priorityBesideShared(f *fixture) {
	s := f.open()
	a, b := f.priorityHeld(s, recipes.Writing), f.writes(s, f.path("a"))
	f.standing(a)
	f.standing(b)
}

func priorityLockInvalid(f *fixture) {
	s := f.open()
	for _, cfg := range []recipes.PriorityLockConfig{
		{Priority: -1}, {Priority: 100}, {Grace: time.Second}, {Strategy: "no such"},
	} {
		_, err := s.PriorityLock(f.path("a"), cfg)
		f.is(err, recipes.ErrInvalid)
	}
	_, err := s.PriorityLock("relative", recipes.PriorityLockConfig{})
	f.is(err, recipes.ErrInvalid)
}

func revocableToo(c *recipes.PriorityLockConfig) { c.Revocable = true }

func asks(c *recipes.PriorityLockConfig) { c.Ask = true }

func priorityAsk(f *fixture) {
	s := f.open()
	same := f.priorityHeld(s, recipes.Reading, at(5), revocableToo)
	low := f.priorityHeld(f.open(), recipes.Reading, at(6), revocableToo)
	w := f.priorityWaits(f.open(), recipes.Writing, at(5), asks)
	f.await(low.Revoked(), "the request")
	w.blocked(f)
	f.must(low.Release(f.ctx))
	select {
	case <-same.Revoked():
		f.Error("a holder of the same priority was asked")
	default:
	}
	f.must(same.Release(f.ctx))
	w.value1(f)
}

func priorityAskNot(f *fixture) {
	h := f.priorityHeld(f.open(), recipes.Writing, at(9), func(c *recipes.PriorityLockConfig) { c.Data = []byte("mine") })
	w := f.priorityWaits(f.open(), recipes.Writing, at(0), asks)
	if data, stat := f.read(h.Znode()); data != "mine" || stat.Version != 0 {
		f.Errorf("the holder's znode holds %q", data)
	}
	f.must(h.Release(f.ctx))
	w.value1(f)
}

func priorityRevokeWaiter(f *fixture) {
	s := f.open()
	h := f.priorityHeld(s, recipes.Writing)
	w := f.priorityWaits(f.open(), recipes.Reading, revocableToo, func(c *recipes.PriorityLockConfig) { c.Data = []byte("me") })
	l := f.priority(s)
	f.must(l.Revoke(f.ctx, w.place.Znode))
	f.must(h.Release(f.ctx))
	g := w.value1(f)
	f.await(g.Revoked(), "the request")
	if data, _ := f.read(g.Znode()); data != "unlock\nzkrecipes: revocable\nme" {
		f.Errorf("the znode holds %q", data)
	}
	f.must(l.Revoke(f.ctx, w.place.Znode)) // by the name that it had
	f.must(g.Release(f.ctx))
	f.must(l.Revoke(f.ctx, w.place.Znode))
	f.is(l.Revoke(f.ctx, f.path("a", "config")), recipes.ErrInvalid)
}

func priorityForced(f *fixture) {
	s := f.open()
	h := f.priorityHeld(f.open(), recipes.Writing, at(9), func(c *recipes.PriorityLockConfig) { c.Revocable, c.Grace = true, 20*time.Millisecond })
	h.Revoked()
	w := f.priorityWaits(s, recipes.Writing)
	f.must(f.priority(s).RevokeForced(f.ctx, h.Znode()))
	f.lost(h, recipes.ErrRevoked)
	g := w.value1(f)
	f.is(h.Write(f.ctx, recipes.Create(f.path("a", "late"), nil)), recipes.ErrNotHeld)
	f.is(f.priority(s).RevokeForced(f.ctx, g.Znode()), recipes.ErrNotRevocable)
	f.standing(g)
}

func handOffHeir(f *fixture) {
	h := f.priorityHeld(f.open(), recipes.Writing, at(5))
	best := f.priorityWaits(f.open(), recipes.Writing, at(0))
	second := f.priorityWaits(f.open(), recipes.Reading, at(1))
	heir := f.priorityWaits(f.open(), recipes.Writing, at(99))
	f.must(h.HandOff(f.ctx, heir.place.Znode))
	g := heir.value1(f)
	best.blocked(f)
	second.blocked(f)
	if data, _ := f.read(f.path("a")); data != "" {
		f.Errorf("the path names an heir who has been granted: %q", data)
	}
	f.must(g.Release(f.ctx))
	f.must(best.value1(f).Release(f.ctx))
	second.value1(f)
}

func handOffLeaves(f *fixture) {
	a, b := f.priorityHeld(f.open(), recipes.Reading, at(5)), f.priorityHeld(f.open(), recipes.Reading, at(5))
	heir := f.priorityWaits(f.open(), recipes.Writing, at(99))
	best := f.priorityWaits(f.open(), recipes.Writing, at(0))
	f.must(a.HandOff(f.ctx, heir.place.Znode))
	in, err := f.priority(f.open()).Contenders(f.ctx)
	f.must(err)
	if len(in) != 3 || !in[1].Heir || in[1].Znode != heir.place.Znode {
		f.Errorf("the line is %+v", in)
	}
	heir.cancel()
	heir.result(f)
	f.must(b.Release(f.ctx))
	best.value1(f)
}

func handOffNobody(f *fixture) {
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
	f.standing(h)
}

func handOffOnce(f *fixture) {
	a, b := f.priorityHeld(f.open(), recipes.Reading), f.priorityHeld(f.open(), recipes.Reading)
	first, second := f.priorityWaits(f.open(), recipes.Writing, at(8)), f.priorityWaits(f.open(), recipes.Writing, at(7))
	f.must(a.HandOff(f.ctx, first.place.Znode))
	f.is(b.HandOff(f.ctx, second.place.Znode), recipes.ErrContended)
	f.standing(b)
	f.must(b.Release(f.ctx))
	f.must(first.value1(f).Release(f.ctx))
	second.value1(f)
}

func handOffLost(f *fixture) {
	s := f.open()
	h := f.priorityHeld(s, recipes.Writing)
	w := f.priorityWaits(f.open(), recipes.Writing)
	f.remove(h.Znode())
	g := w.value1(f)
	next := f.priorityWaits(f.open(), recipes.Writing)
	f.is(h.HandOff(f.ctx, next.place.Znode), recipes.ErrNotHeld, recipes.ErrRemoved)
	f.standing(g)
	next.blocked(f)
}

func handOffEnds(f *fixture) {
	h := f.priorityHeld(f.open(), recipes.Writing)
	w := f.priorityWaits(f.open(), recipes.Writing)
	h.Lost()
	f.must(h.HandOff(f.ctx, w.place.Znode))
	f.lost(h, recipes.ErrReleased)
	f.is(h.Write(f.ctx), recipes.ErrNotHeld)
	f.is(h.HandOff(f.ctx, w.place.Znode), recipes.ErrNotHeld)
	f.standing(w.value1(f))
}
