package recipestest

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// sharedKind is a shared lock of which only writers are taken: it promises what
// a lock does.
func sharedKind(strategy recipes.Strategy) kind {
	return kind{name: "writers", marker: "write-", strategy: strategy,
		take: func(s recipes.Session, path string, o options) (line, error) {
			l, err := s.SharedLock(path, recipes.SharedLockConfig{Strategy: o.strategy, Data: []byte(o.data), Joined: o.joined})
			return sharedLine{l}, err
		}}
}

func sharedKinds() []kind {
	var kinds []kind
	for _, s := range recipes.Strategies() {
		kinds = append(kinds, sharedKind(s))
	}
	return kinds
}

type sharedLine struct{ recipes.SharedLock }

func (l sharedLine) Enter(ctx context.Context) (grant, error) {
	h, err := l.AcquireWrite(ctx)
	if err != nil {
		return nil, err
	}
	return lockGrant{h}, nil
}

func (l sharedLine) Standing(ctx context.Context) ([]recipes.Contender, error) {
	all, err := l.Contenders(ctx)
	if err != nil {
		return nil, err
	}
	plain := make([]recipes.Contender, len(all))
	for i, c := range all {
		plain[i] = c.Contender
	}
	return plain, nil
}

// sharedLockTests are what only a shared lock promises.
func sharedLockTests() []test {
	return []test{
		{"the znodes are named as documented", sharedNames},
		{"readers share", readersShare},
		{"a writer waits for readers, and readers for a writer", writerAlone},
		{"a reader that comes after a waiting writer waits for it", readerBehindWriter},
		{"a writer that leaves lets all readers behind it in, and nobody else", writerLeaves},
		{"a waiting writer that gives up lets the readers behind it in", writerGivesUp},
		{"a reader in the middle that leaves lets nobody in", readerLeaves},
		{"try/a reader is refused by a waiting writer", tryReader},
		{"try/a writer is refused by a reader", tryWriter},
		{"contenders tell their mode", sharedContenders},
		{"downgrade/readers behind are let in, writers are not", downgradeLetsReadersIn},
		{"downgrade/it never stands behind a waiting writer", downgradeBeforeWriter},
		{"downgrade/a read lock cannot be downgraded, one twice can", downgradeTwice},
		{"downgrade/a reader that comes later is let in", downgradeThenReader},
		{"downgrade/a try finds the downgraded writer a reader", downgradeThenTry},
		{"downgrade/of a lost hold is ErrNotHeld", downgradeLost},
		{"downgrade/data and requests to give way are kept", downgradeKeeps},
		{"a bad grace is ErrInvalid", graceInvalid},
		{"contenders of other libraries stand in the same line", sharedForeign},
		{"a cancelled reader leaves no node", sharedCancel},
		{"a reader keeps its place over a lost connection, and misses nothing", sharedSevered},
		{"the end of a session is the end of its hold", sharedExpired},
	}
}

func (f *fixture) shared(s recipes.Session, path string, o ...func(*recipes.SharedLockConfig)) recipes.SharedLock {
	f.Helper()
	var cfg recipes.SharedLockConfig
	for _, change := range o {
		change(&cfg)
	}
	l, err := s.SharedLock(path, cfg)
	f.must(err)
	return l
}

func (f *fixture) reads(s recipes.Session, path string) recipes.SharedHold {
	f.Helper()
	h, err := f.shared(s, path).AcquireRead(f.ctx)
	f.must(err)
	return h
}

func (f *fixture) writes(s recipes.Session, path string) recipes.SharedHold {
	f.Helper()
	h, err := f.shared(s, path).AcquireWrite(f.ctx)
	f.must(err)
	return h
}

// sharedWaiter is a contender that has joined and waits.
type sharedWaiter struct {
	*pending[recipes.SharedHold]
	place  recipes.Place
	cancel context.CancelFunc
}

func (f *fixture) sharedWaits(s recipes.Session, path string, mode recipes.Mode) *sharedWaiter {
	f.Helper()
	joined := make(chan recipes.Place, 1)
	l := f.shared(s, path, func(c *recipes.SharedLockConfig) { c.Joined = func(p recipes.Place) { joined <- p } })
	ctx, cancel := context.WithCancel(f.ctx)
	w := &sharedWaiter{cancel: cancel}
	w.pending = start(f, func() (recipes.SharedHold, error) {
		if mode == recipes.Reading {
			return l.AcquireRead(ctx)
		}
		return l.AcquireWrite(ctx)
	})
	f.Cleanup(cancel)
	w.place = receive(f, joined, "joining the line")
	return w
}

func sharedNames(f *fixture) {
	s := f.open()
	r := f.reads(s, f.path("a"))
	w := f.sharedWaits(s, f.path("a"), recipes.Writing)
	for znode, marker := range map[string]string{r.Znode(): "read-", w.place.Znode: "write-"} {
		name := strings.TrimPrefix(znode, f.path("a")+"/")
		if want := `^_c_` + guid + `-` + marker + `[0-9]{10}$`; !regexp.MustCompile(want).MatchString(name) {
			f.Errorf("znode %s; want its name like %s", znode, want)
		}
	}
	if r.Mode() != recipes.Reading {
		f.Errorf("a reader's mode is %q", r.Mode())
	}
}

func readersShare(f *fixture) {
	s, other := f.open(), f.open()
	a, b, c := f.reads(s, f.path("a")), f.reads(s, f.path("a")), f.reads(other, f.path("a"))
	for _, h := range []recipes.SharedHold{a, b, c} {
		f.standing(h)
		f.must(h.Write(f.ctx))
	}
	for _, h := range []recipes.SharedHold{b, a, c} {
		f.must(h.Release(f.ctx))
	}
	f.awaitChildren(f.path("a"), 0)
}

func writerAlone(f *fixture) {
	s := f.open()
	a, b := f.reads(s, f.path("a")), f.reads(s, f.path("a"))
	w := f.sharedWaits(f.open(), f.path("a"), recipes.Writing)
	f.must(b.Release(f.ctx))
	w.blocked(f)
	f.must(a.Release(f.ctx))
	h := w.value1(f)
	if h.Mode() != recipes.Writing {
		f.Errorf("a writer's mode is %q", h.Mode())
	}
	next := f.sharedWaits(s, f.path("a"), recipes.Writing)
	r := f.sharedWaits(s, f.path("a"), recipes.Reading)
	f.must(h.Release(f.ctx))
	h = next.value1(f)
	r.blocked(f)
	f.must(h.Release(f.ctx))
	r.value1(f)
}

func readerBehindWriter(f *fixture) {
	s := f.open()
	a := f.reads(s, f.path("a"))
	w := f.sharedWaits(s, f.path("a"), recipes.Writing)
	r := f.sharedWaits(s, f.path("a"), recipes.Reading)
	f.must(a.Release(f.ctx))
	h := w.value1(f)
	r.blocked(f)
	f.must(h.Release(f.ctx))
	r.value1(f)
}

func writerLeaves(f *fixture) {
	s := f.open()
	h := f.writes(s, f.path("a"))
	var readers []*sharedWaiter
	for range 4 {
		readers = append(readers, f.sharedWaits(f.open(), f.path("a"), recipes.Reading))
	}
	w := f.sharedWaits(f.open(), f.path("a"), recipes.Writing)
	late := f.sharedWaits(f.open(), f.path("a"), recipes.Reading)
	f.must(h.Release(f.ctx))
	for _, r := range readers {
		defer func(h recipes.SharedHold) { f.standing(h) }(r.value1(f))
	}
	w.blocked(f)
	late.blocked(f)
}

func writerGivesUp(f *fixture) {
	s := f.open()
	f.reads(s, f.path("a"))
	w := f.sharedWaits(s, f.path("a"), recipes.Writing)
	r := f.sharedWaits(f.open(), f.path("a"), recipes.Reading)
	r.blocked(f)
	w.cancel()
	_, err := w.result(f)
	f.is(err, context.Canceled)
	r.value1(f)
}

func readerLeaves(f *fixture) {
	s := f.open()
	a, b, c := f.reads(s, f.path("a")), f.reads(s, f.path("a")), f.reads(s, f.path("a"))
	w := f.sharedWaits(f.open(), f.path("a"), recipes.Writing)
	f.must(c.Release(f.ctx)) // the one it watches
	f.must(a.Release(f.ctx))
	w.blocked(f)
	f.must(b.Release(f.ctx))
	w.value1(f)
}

func tryReader(f *fixture) {
	s := f.open()
	a := f.reads(s, f.path("a"))
	h, err := f.shared(s, f.path("a")).TryRead(f.ctx)
	f.must(err)
	f.must(h.Release(f.ctx))
	w := f.sharedWaits(s, f.path("a"), recipes.Writing)
	_, err = f.shared(s, f.path("a")).TryRead(f.ctx)
	f.is(err, recipes.ErrContended)
	f.awaitChildren(f.path("a"), 2)
	f.must(a.Release(f.ctx))
	w.value1(f)
}

func tryWriter(f *fixture) {
	s := f.open()
	a := f.reads(s, f.path("a"))
	_, err := f.shared(s, f.path("a")).TryWrite(f.ctx)
	f.is(err, recipes.ErrContended)
	f.must(a.Release(f.ctx))
	h, err := f.shared(s, f.path("a")).TryWrite(f.ctx)
	f.must(err)
	f.must(h.Release(f.ctx))
}

func sharedContenders(f *fixture) {
	s := f.open()
	l := f.shared(s, f.path("a"), func(c *recipes.SharedLockConfig) {
		c.Data, c.Revocable, c.Grace = []byte("unlock me"), true, 3*time.Second
	})
	h, err := l.AcquireWrite(f.ctx)
	f.must(err)
	f.sharedWaits(s, f.path("a"), recipes.Reading)
	f.sharedWaits(s, f.path("a"), recipes.Writing)
	in, err := l.Contenders(f.ctx)
	f.must(err)
	var modes []recipes.Mode
	for _, c := range in {
		modes = append(modes, c.Mode)
	}
	if !slices.Equal(modes, []recipes.Mode{recipes.Writing, recipes.Reading, recipes.Writing}) {
		f.Fatalf("the line is %v", modes)
	}
	c := in[0]
	if c.Znode != h.Znode() || c.Token != h.Token() || string(c.Data) != "unlock me" || !c.Revocable || c.Grace != 3*time.Second || c.Revoked || c.Downgraded {
		f.Errorf("the holder is told as %+v", c)
	}
	if c := in[1]; c.Revocable || c.Grace != 0 {
		f.Errorf("a waiter is told as %+v", c)
	}
}

func downgradeLetsReadersIn(f *fixture) {
	h := f.writes(f.open(), f.path("a"))
	r1, r2 := f.sharedWaits(f.open(), f.path("a"), recipes.Reading), f.sharedWaits(f.open(), f.path("a"), recipes.Reading)
	w := f.sharedWaits(f.open(), f.path("a"), recipes.Writing)
	late := f.sharedWaits(f.open(), f.path("a"), recipes.Reading)
	token := h.Token()
	f.must(h.Downgrade(f.ctx))
	a, b := r1.value1(f), r2.value1(f)
	if h.Mode() != recipes.Reading || h.Token() != token {
		f.Errorf("downgraded to %q, token %d; want read, %d", h.Mode(), h.Token(), token)
	}
	f.standing(h)
	f.must(a.Release(f.ctx))
	f.must(b.Release(f.ctx))
	w.blocked(f)
	late.blocked(f)
	f.must(h.Release(f.ctx))
	f.must(w.value1(f).Release(f.ctx))
	late.value1(f)
}

// CURATOR-621: the downgraded lock queued behind a waiting writer, or both held.
func downgradeBeforeWriter(f *fixture) {
	h := f.writes(f.open(), f.path("a"))
	s := f.open()
	w := f.sharedWaits(s, f.path("a"), recipes.Writing)
	before := f.counters(s).WatchEvents
	f.must(h.Downgrade(f.ctx)) // does not wait for w
	f.reach(s, func(c recipes.Counters) bool { return c.WatchEvents > before })
	f.must(h.Write(f.ctx))
	w.blocked(f)
	f.standing(h)
	f.must(h.Release(f.ctx))
	w.value1(f)
}

func downgradeTwice(f *fixture) {
	s := f.open()
	f.is(f.reads(s, f.path("a")).Downgrade(f.ctx), recipes.ErrInvalid)
	h := f.writes(s, f.path("b"))
	f.must(h.Downgrade(f.ctx))
	f.must(h.Downgrade(f.ctx))
	f.must(h.Release(f.ctx))
	f.is(h.Downgrade(f.ctx), recipes.ErrNotHeld)
}

func downgradeThenReader(f *fixture) {
	s := f.open()
	h := f.writes(s, f.path("a"))
	f.must(h.Downgrade(f.ctx))
	r := f.reads(f.open(), f.path("a"))
	in, err := f.shared(s, f.path("a")).Contenders(f.ctx)
	f.must(err)
	if len(in) != 2 || in[0].Mode != recipes.Reading || !in[0].Downgraded || in[1].Downgraded {
		f.Errorf("the line is %+v", in)
	}
	f.must(h.Release(f.ctx))
	f.must(r.Release(f.ctx))
}

func downgradeThenTry(f *fixture) {
	s := f.open()
	h := f.writes(s, f.path("a"))
	f.must(h.Downgrade(f.ctx))
	r, err := f.shared(s, f.path("a")).TryRead(f.ctx)
	f.must(err)
	_, err = f.shared(s, f.path("a")).TryWrite(f.ctx)
	f.is(err, recipes.ErrContended)
	f.must(r.Release(f.ctx))
	w := f.sharedWaits(s, f.path("a"), recipes.Writing)
	_, err = f.shared(s, f.path("a")).TryRead(f.ctx)
	f.is(err, recipes.ErrContended)
	f.must(h.Release(f.ctx))
	w.value1(f)
}

func downgradeLost(f *fixture) {
	s := f.open()
	h := f.writes(s, f.path("a"))
	f.remove(h.Znode())
	f.is(h.Downgrade(f.ctx), recipes.ErrNotHeld, recipes.ErrRemoved)
	g := f.writes(s, f.path("a"))
	f.must(s.Close(f.ctx))
	f.is(g.Downgrade(f.ctx), recipes.ErrNotHeld, recipes.ErrClosed)
}

func downgradeKeeps(f *fixture) {
	s := f.open()
	l := f.shared(s, f.path("a"), func(c *recipes.SharedLockConfig) { c.Data, c.Revocable = []byte("me"), true })
	h, err := l.AcquireWrite(f.ctx)
	f.must(err)
	f.must(l.Revoke(f.ctx, h.Znode()))
	f.must(h.Downgrade(f.ctx))
	in, err := l.Contenders(f.ctx)
	f.must(err)
	if c := in[0]; !c.Downgraded || !c.Revoked || !c.Revocable || string(c.Data) != "me" {
		f.Errorf("the holder is told as %+v", c)
	}
	f.await(h.Revoked(), "the request")
}

func graceInvalid(f *fixture) {
	s := f.open()
	for _, cfg := range []recipes.SharedLockConfig{
		{Grace: time.Second},
		{Revocable: true, Grace: -1},
		{Revocable: true, Grace: time.Microsecond},
		{Strategy: "no such"},
	} {
		_, err := s.SharedLock(f.path("a"), cfg)
		f.is(err, recipes.ErrInvalid)
	}
}

// They follow the text: guid-/read-, guid-/write-, and know no marks.
func sharedForeign(f *fixture) {
	f.create(f.path("a"), "")
	stand := func(name string) string {
		znode, err := f.outside.Create(f.path("a", name), []byte("theirs"), zk.FlagEphemeral|zk.FlagSequence, zk.WorldACL(zk.PermAll))
		f.must(err)
		return znode
	}
	reader := stand("guid-read-")
	h := f.reads(f.open(), f.path("a"))
	w := f.sharedWaits(f.open(), f.path("a"), recipes.Writing)
	writer := stand("write-")
	r := f.sharedWaits(f.open(), f.path("a"), recipes.Reading)
	f.must(h.Release(f.ctx))
	w.blocked(f)
	f.remove(reader)
	g := w.value1(f)
	f.must(g.Downgrade(f.ctx))
	r.blocked(f) // behind their writer
	f.must(g.Release(f.ctx))
	r.blocked(f)
	f.remove(writer)
	r.value1(f)
	f.is(f.shared(f.open(), f.path("a")).Revoke(f.ctx, stand("x-read-")), recipes.ErrNotRevocable)
}

func sharedCancel(f *fixture) {
	h := f.writes(f.open(), f.path("a"))
	r, next := f.sharedWaits(f.open(), f.path("a"), recipes.Reading), f.sharedWaits(f.open(), f.path("a"), recipes.Writing)
	r.cancel()
	_, err := r.result(f)
	f.is(err, context.Canceled)
	f.awaitNode(r.place.Znode, false)
	f.must(h.Release(f.ctx))
	f.must(next.value1(f).Release(f.ctx))
	f.awaitChildren(f.path("a"), 0)
}

func sharedSevered(f *fixture) {
	h := f.writes(f.open(), f.path("a"))
	s := f.open()
	r := f.sharedWaits(s, f.path("a"), recipes.Reading)
	f.sever(s)
	f.must(h.Downgrade(f.ctx))
	r.blocked(f)
	f.proxy.restore(s.ID())
	g := r.value1(f)
	if g.Znode() != r.place.Znode {
		f.Errorf("granted as %s; joined as %s", g.Znode(), r.place.Znode)
	}
	f.standing(h)
}

func sharedExpired(f *fixture) {
	s := f.open()
	a, b := f.reads(s, f.path("a")), f.reads(f.open(), f.path("a"))
	w := f.sharedWaits(f.open(), f.path("a"), recipes.Writing)
	f.expire(s)
	f.lost(a, recipes.ErrExpired, recipes.ErrSessionLost)
	w.blocked(f)
	f.must(b.Release(f.ctx))
	w.value1(f)
}
