package recipestest

import (
	"context"
	"slices"
	"strings"

	"github.com/zkrecipes/zkrecipes/recipes"
)

func doubleBarrierTests() []test {
	return []test{
		{"arguments are checked", doubleArguments},
		{"enter/nobody enters before all are there", doubleEnter},
		{"enter/the znodes are those of the text", doubleLayout},
		{"enter/a lone member of one enters", doubleOne},
		{"enter/a lone member never enters, though a ready is left from before", doubleStaleReady},
		{"enter/ready is no member", doubleReadyIsNoMember},
		{"enter/surplus members wait for the next generation", doubleSurplus},
		{"enter/a member that gives up is not counted", doubleCancelled},
		{"enter/a member whose session dies is not counted", doubleDied},
		{"enter/a member that another hand removes is told", doubleRemoved},
		{"enter/a ready during a lost connection is not missed", doubleReconnects},
		{"leave/all leave together", doubleLeave},
		{"leave/it is used again and again", doubleAgain},
		{"leave/who fails after entering does not keep the others", doubleLeaveDied},
		{"leave/who gives up does not keep the others", doubleLeaveCancelled},
		{"leave/a later ready releases nobody who leaves", doubleLateReady},
		{"leave/a departure during a lost connection is not missed", doubleLeaveReconnects},
		{"leave/a member that was removed waits, and is told", doubleLeaveRemoved},
		{"leave/it ends with the session", doubleLeaveLost},
	}
}

func (f *fixture) doubleBarrier(s recipes.Session, path string, size int) recipes.DoubleBarrier {
	f.Helper()
	b, err := s.DoubleBarrier(path, recipes.DoubleBarrierConfig{Size: size})
	f.must(err)
	return b
}

// entering is a member that enters in the background.
type entering struct {
	*pending[recipes.Passage]
	session recipes.Session
	cancel  context.CancelFunc
}

// enters starts a member, and returns when its znode is there.
func (f *fixture) enters(s recipes.Session, path string, size int) *entering {
	f.Helper()
	before := f.children(path)
	ctx, cancel := context.WithCancel(f.ctx)
	e := &entering{session: s, cancel: cancel}
	e.pending = start(f, func() (recipes.Passage, error) { return f.doubleBarrier(s, path, size).Enter(ctx, []byte("who")) })
	f.Cleanup(cancel)
	for {
		new := func(name string) bool { return strings.HasPrefix(name, "_c_") && !slices.Contains(before, name) }
		if slices.ContainsFunc(f.children(path), new) || f.ctx.Err() != nil {
			return e
		}
	}
}

// entered has size members enter together.
func (f *fixture) entered(path string, size int) []recipes.Passage {
	f.Helper()
	var all []*entering
	for range size {
		all = append(all, f.enters(f.open(), path, size))
	}
	var in []recipes.Passage
	for _, e := range all {
		in = append(in, e.value1(f))
	}
	return in
}

func (f *fixture) leaves(p recipes.Passage) *pending[struct{}] {
	return startErr(f, func() error { return p.Leave(f.ctx) })
}

func (f *fixture) allLeave(in []recipes.Passage) {
	f.Helper()
	var all []*pending[struct{}]
	for _, p := range in {
		all = append(all, f.leaves(p))
	}
	for _, l := range all {
		l.value1(f)
	}
}

func doubleArguments(f *fixture) {
	s := f.open()
	for _, size := range []int{0, -1} {
		_, err := s.DoubleBarrier("/a", recipes.DoubleBarrierConfig{Size: size})
		f.is(err, recipes.ErrInvalid)
	}
	_, err := s.DoubleBarrier("a", recipes.DoubleBarrierConfig{Size: 1})
	f.is(err, recipes.ErrInvalid)
	if b := f.doubleBarrier(s, "/a", 3); b.Path() != "/a" || b.Size() != 3 {
		f.Errorf("%s of %d", b.Path(), b.Size())
	}
	_, err = f.doubleBarrier(s, f.path("b"), 1).Enter(f.ended(), nil)
	f.is(err, context.Canceled)
	f.awaitChildren(f.path("b"), 0)
}

func doubleEnter(f *fixture) {
	a, b := f.open(), f.open()
	one := f.enters(a, f.path("b"), 3)
	two := f.enters(a, f.path("b"), 3)
	one.blocked(f)
	two.blocked(f)
	three := f.enters(b, f.path("b"), 3)
	members := one.value1(f).Members()
	for i, e := range []*entering{one, two, three} {
		p := e.value1(f)
		f.standing(p)
		if !slices.Equal(p.Members(), members) || len(members) != 3 || members[i] != p.Znode() {
			f.Errorf("%s entered with %v; the first with %v", p.Znode(), p.Members(), members)
		}
	}
	f.must(one.value.Write(f.ctx))
}

func doubleLayout(f *fixture) {
	f.entered(f.path("b"), 2)
	names := f.children(f.path("b"))
	if len(names) != 3 || names[2] != "ready" || !strings.Contains(names[0], "-member-000000000") {
		f.Errorf("children %v", names)
	}
	data, stat := f.read(f.path("b", "ready"))
	if stat.EphemeralOwner != 0 || !strings.Contains(data, names[0]) || !strings.Contains(data, names[1]) {
		f.Errorf("ready has %q, %+v", data, stat)
	}
	if data, stat := f.read(f.path("b", names[0])); data != "who" || stat.EphemeralOwner == 0 {
		f.Errorf("a member has %q, %+v", data, stat)
	}
}

func doubleOne(f *fixture) {
	s := f.open()
	for range 2 {
		p, err := f.doubleBarrier(s, f.path("b"), 1).Enter(f.ctx, nil)
		f.must(err)
		f.must(p.Leave(f.ctx))
		f.awaitChildren(f.path("b"), 0)
	}
}

// Curator GH-1290, kazoo: a ready that was left let a lone member in.
func doubleStaleReady(f *fixture) {
	f.create(f.path("b", "ready"), "") // as Curator leaves it
	one := f.enters(f.open(), f.path("b"), 2)
	_, err := f.doubleBarrier(f.open(), f.path("c"), 2).Enter(f.briefly(), nil)
	f.is(err, context.DeadlineExceeded)
	one.blocked(f)
	two := f.enters(f.open(), f.path("b"), 2)
	one.value1(f)
	two.value1(f)
	// Sessions that die leave a ready of ours.
	f.expire(one.session)
	f.expire(two.session)
	f.awaitChildren(f.path("b"), 1)
	three := f.enters(f.open(), f.path("b"), 2)
	_, err = f.doubleBarrier(f.open(), f.path("d"), 2).Enter(f.briefly(), nil)
	f.is(err, context.DeadlineExceeded)
	three.blocked(f)
	four := f.enters(f.open(), f.path("b"), 2)
	f.allLeave([]recipes.Passage{three.value1(f), four.value1(f)})
	f.awaitChildren(f.path("b"), 0)
}

// Netflix/curator#99, kazoo's barrier.
func doubleReadyIsNoMember(f *fixture) {
	f.create(f.path("b", "ready"), "")
	f.create(f.path("b", "note"), "")
	one, two := f.enters(f.open(), f.path("b"), 3), f.enters(f.open(), f.path("b"), 3)
	f.is(f.briefEnter(f.path("other"), 3), context.DeadlineExceeded)
	one.blocked(f)
	two.blocked(f)
}

func (f *fixture) briefEnter(path string, size int) error {
	f.Helper()
	_, err := f.doubleBarrier(f.open(), path, size).Enter(f.briefly(), nil)
	return err
}

// etcd#14604.
func doubleSurplus(f *fixture) {
	in := f.entered(f.path("b"), 2)
	three, four := f.enters(f.open(), f.path("b"), 2), f.enters(f.open(), f.path("b"), 2)
	f.is(f.briefEnter(f.path("b"), 2), context.DeadlineExceeded)
	five := f.enters(f.open(), f.path("b"), 2)
	first := f.leaves(in[1])
	first.blocked(f)
	three.blocked(f)
	f.must(in[0].Leave(f.ctx))
	first.value1(f)
	f.allLeave([]recipes.Passage{three.value1(f), four.value1(f)})
	five.blocked(f)
	six := f.enters(f.open(), f.path("b"), 2)
	f.allLeave([]recipes.Passage{five.value1(f), six.value1(f)})
	f.awaitChildren(f.path("b"), 0)
}

func doubleCancelled(f *fixture) {
	one := f.enters(f.open(), f.path("b"), 2)
	one.cancel()
	_, err := one.result(f)
	f.is(err, context.Canceled)
	f.awaitChildren(f.path("b"), 0)
	two := f.enters(f.open(), f.path("b"), 2)
	f.is(f.briefEnter(f.path("c"), 2), context.DeadlineExceeded)
	two.blocked(f)
	three := f.enters(f.open(), f.path("b"), 2)
	f.allLeave([]recipes.Passage{two.value1(f), three.value1(f)})
}

func doubleDied(f *fixture) {
	one := f.enters(f.open(), f.path("b"), 2)
	f.expire(one.session)
	_, err := one.result(f)
	f.is(err, recipes.ErrSessionLost, recipes.ErrExpired)
	f.awaitChildren(f.path("b"), 0)
	two := f.enters(f.open(), f.path("b"), 2)
	two.blocked(f)
	three := f.enters(f.open(), f.path("b"), 2)
	f.allLeave([]recipes.Passage{two.value1(f), three.value1(f)})
}

func doubleRemoved(f *fixture) {
	one := f.enters(f.open(), f.path("b"), 2)
	f.remove(f.path("b", f.children(f.path("b"))[0]))
	_, err := one.result(f)
	f.is(err, recipes.ErrRemoved)
}

func doubleReconnects(f *fixture) {
	one := f.enters(f.open(), f.path("b"), 2)
	f.sever(one.session)
	two := f.enters(f.open(), f.path("b"), 2).value1(f)
	one.blocked(f)
	f.reconnect(one.session)
	f.allLeave([]recipes.Passage{one.value1(f), two})
}

func doubleLeave(f *fixture) {
	for _, order := range [][]int{{0, 1, 2}, {2, 1, 0}, {1, 2, 0}} {
		in := f.entered(f.path("b"), 3)
		one, two := f.leaves(in[order[0]]), f.leaves(in[order[1]])
		f.lost(in[order[0]], recipes.ErrReleased)
		one.blocked(f)
		two.blocked(f)
		f.standing(in[order[2]])
		f.must(in[order[2]].Leave(f.ctx))
		one.value1(f)
		two.value1(f)
		f.awaitChildren(f.path("b"), 0)
		f.must(in[0].Leave(f.ctx)) // again
	}
}

func doubleAgain(f *fixture) {
	sessions := []recipes.Session{f.open(), f.open(), f.open()}
	var all []*pending[struct{}]
	const generations = 5
	for _, s := range sessions {
		b := f.doubleBarrier(s, f.path("b"), len(sessions))
		all = append(all, startErr(f, func() error {
			for range generations {
				p, err := b.Enter(f.ctx, nil)
				if err != nil {
					return err
				}
				if err := p.Leave(f.ctx); err != nil {
					return err
				}
			}
			return nil
		}))
	}
	for _, p := range all {
		p.value1(f)
	}
	f.awaitChildren(f.path("b"), 0)
}

func doubleLeaveDied(f *fixture) {
	sessions := []recipes.Session{f.open(), f.open(), f.open()}
	var all []*entering
	for _, s := range sessions {
		all = append(all, f.enters(s, f.path("b"), 3))
	}
	lowest, middle, highest := all[0].value1(f), all[1].value1(f), all[2].value1(f)
	one := f.leaves(middle)
	one.blocked(f)
	f.expire(sessions[2])
	f.lost(highest, recipes.ErrExpired)
	one.blocked(f)
	f.expire(sessions[0])
	one.value1(f)
	f.is(lowest.Leave(f.ctx), recipes.ErrNotHeld, recipes.ErrExpired)
}

// CURATOR-233 and CURATOR-536: a leave with a time limit spun for ever.
func doubleLeaveCancelled(f *fixture) {
	in := f.entered(f.path("b"), 3)
	for _, p := range in[:2] {
		f.is(p.Leave(f.briefly()), context.DeadlineExceeded)
		f.awaitNode(p.Znode(), false)
	}
	again := f.leaves(in[0])
	again.blocked(f)
	f.is(in[2].Leave(f.ended()), context.Canceled)
	again.value1(f)
	f.must(in[1].Leave(f.ctx))
}

// Curator PR 416: entering and leaving shared a watcher.
func doubleLateReady(f *fixture) {
	in := f.entered(f.path("b"), 2)
	one := f.leaves(in[1])
	f.awaitNode(in[1].Znode(), false)
	_, err := f.outside.Set(f.path("b", "ready"), []byte("late"), -1)
	f.must(err)
	f.remove(f.path("b", "ready"))
	f.create(f.path("b", "ready"), "later")
	one.blocked(f)
	f.must(in[0].Leave(f.ctx))
	one.value1(f)
}

func doubleLeaveReconnects(f *fixture) {
	a, b := f.open(), f.open()
	one, two := f.enters(a, f.path("b"), 2), f.enters(b, f.path("b"), 2)
	lower, higher := one.value1(f), two.value1(f)
	l := f.leaves(higher)
	f.awaitNode(higher.Znode(), false)
	f.sever(b)
	f.must(lower.Leave(f.ctx))
	l.blocked(f)
	f.reconnect(b)
	l.value1(f)
}

func doubleLeaveRemoved(f *fixture) {
	in := f.entered(f.path("b"), 2)
	f.remove(in[0].Znode())
	f.lost(in[0], recipes.ErrRemoved)
	one := f.leaves(in[0])
	one.blocked(f)
	f.must(in[1].Leave(f.ctx))
	_, err := one.result(f)
	f.is(err, recipes.ErrRemoved, recipes.ErrNotHeld)
}

func doubleLeaveLost(f *fixture) {
	s := f.open()
	one := f.enters(s, f.path("b"), 2)
	two := f.enters(f.open(), f.path("b"), 2).value1(f)
	l := f.leaves(one.value1(f))
	f.must(s.Close(f.ctx))
	_, err := l.result(f)
	f.is(err, recipes.ErrSessionLost, recipes.ErrClosed, recipes.ErrNotHeld)
	f.must(two.Leave(f.ctx))
}
