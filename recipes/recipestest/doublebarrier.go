package recipestest

import (
	"context"
	"slices"
	"strings"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/recipes"
)

func doubleBarrierTests() []test {
	return []test{
		{"a bad path or size is ErrInvalid", func(f *fixture) {
			s := f.open()
			for _, size := range []int{0, -1} {
				f.is(errOf(s.DoubleBarrier("/a", recipes.DoubleBarrierConfig{Size: size})), recipes.ErrInvalid)
			}
			f.is(errOf(s.DoubleBarrier("a", recipes.DoubleBarrierConfig{Size: 1})), recipes.ErrInvalid)
			b := f.doubleBarrier(s, "/a", 3)
			f.failIf(b.Path() != "/a" || b.Size() != 3, "%s of %d", b.Path(), b.Size())
			f.is(errOf(f.doubleBarrier(s, f.path("b"), 1).Enter(f.ended(), nil)), context.Canceled)
			f.awaitChildren(f.path("b"), 0)
		}},
		{"enter/no member enters before all have joined, and all enter with the same members", func(f *fixture) {
			a, b := f.open(), f.open()
			one := f.enters(a, f.path("b"), 3)
			two := f.enters(a, f.path("b"), 3)
			one.blocked(f)
			two.blocked(f)
			three := f.enters(b, f.path("b"), 3)
			members := one.must(f).Members()
			for i, e := range []*entering{one, two, three} {
				p := e.must(f)
				f.held(p)
				if !slices.Equal(p.Members(), members) || len(members) != 3 || members[i] != p.Znode() {
					f.Errorf("%s entered with %v; the first with %v", p.Znode(), p.Members(), members)
				}
			}
			f.must(one.value.Write(f.ctx))
		}},
		{"enter/the znodes are those of the source text", func(f *fixture) {
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
		}},
		{"enter/a barrier of size one admits a single member", func(f *fixture) {
			s := f.open()
			for range 2 {
				p := must.Get(f.doubleBarrier(s, f.path("b"), 1).Enter(f.ctx, nil))(f)
				f.must(p.Leave(f.ctx))
				f.awaitChildren(f.path("b"), 0)
			}
		}},
		// Curator GH-1290, kazoo: a stale ready let a lone member in.
		{"enter/a lone member does not enter by a stale ready", func(f *fixture) {
			f.create(f.path("b", "ready"), "") // Curator's barrier leaves it behind
			one := f.enters(f.open(), f.path("b"), 2)
			f.is(f.briefEnter(f.path("c"), 2), context.DeadlineExceeded)
			one.blocked(f)
			two := f.enters(f.open(), f.path("b"), 2)
			one.must(f)
			two.must(f)
			// The expired sessions leave a ready that names their members.
			f.expire(one.session)
			f.expire(two.session)
			f.awaitChildren(f.path("b"), 1)
			three := f.enters(f.open(), f.path("b"), 2)
			f.is(f.briefEnter(f.path("d"), 2), context.DeadlineExceeded)
			three.blocked(f)
			four := f.enters(f.open(), f.path("b"), 2)
			f.allLeave([]recipes.Passage{three.must(f), four.must(f)})
			f.awaitChildren(f.path("b"), 0)
		}},
		// Netflix/curator#99, kazoo: the ready znode was counted as a member, or ignored.
		{"enter/ready is not a member", func(f *fixture) {
			f.create(f.path("b", "ready"), "")
			f.create(f.path("b", "note"), "")
			one, two := f.enters(f.open(), f.path("b"), 3), f.enters(f.open(), f.path("b"), 3)
			f.is(f.briefEnter(f.path("other"), 3), context.DeadlineExceeded)
			one.blocked(f)
			two.blocked(f)
		}},
		// etcd#14604: surplus members broke the barrier.
		{"enter/surplus members wait for the next round", func(f *fixture) {
			in := f.entered(f.path("b"), 2)
			three, four := f.enters(f.open(), f.path("b"), 2), f.enters(f.open(), f.path("b"), 2)
			f.is(f.briefEnter(f.path("c"), 2), context.DeadlineExceeded)
			surplus := f.enters(f.open(), f.path("b"), 2)
			surplus.cancel()
			f.is(surplus.failure(f), context.Canceled)
			f.awaitChildren(f.path("b"), 5) // the member counts until it is deleted
			five := f.enters(f.open(), f.path("b"), 2)
			first := f.leaves(in[1])
			first.blocked(f)
			three.blocked(f)
			f.must(in[0].Leave(f.ctx))
			first.must(f)
			f.allLeave([]recipes.Passage{three.must(f), four.must(f)})
			five.blocked(f)
			six := f.enters(f.open(), f.path("b"), 2)
			f.allLeave([]recipes.Passage{five.must(f), six.must(f)})
			f.awaitChildren(f.path("b"), 0)
		}},
		{"enter/a member that is cancelled is not counted", func(f *fixture) {
			one := f.enters(f.open(), f.path("b"), 2)
			one.cancel()
			f.is(one.failure(f), context.Canceled)
			f.awaitChildren(f.path("b"), 0)
			two := f.enters(f.open(), f.path("b"), 2)
			f.is(f.briefEnter(f.path("c"), 2), context.DeadlineExceeded)
			two.blocked(f)
			three := f.enters(f.open(), f.path("b"), 2)
			f.allLeave([]recipes.Passage{two.must(f), three.must(f)})
		}},
		{"enter/a member whose session ends is not counted", func(f *fixture) {
			one := f.enters(f.open(), f.path("b"), 2)
			f.expire(one.session)
			f.is(one.failure(f), recipes.ErrSessionLost, recipes.ErrExpired)
			f.awaitChildren(f.path("b"), 0)
			two := f.enters(f.open(), f.path("b"), 2)
			two.blocked(f)
			three := f.enters(f.open(), f.path("b"), 2)
			f.allLeave([]recipes.Passage{two.must(f), three.must(f)})
		}},
		{"enter/a member whose znode is deleted gets ErrRemoved", func(f *fixture) {
			one := f.enters(f.open(), f.path("b"), 2)
			f.remove(f.path("b", f.children(f.path("b"))[0]))
			f.is(one.failure(f), recipes.ErrRemoved)
		}},
		{"enter/a ready during a lost connection is not missed", func(f *fixture) {
			one := f.enters(f.open(), f.path("b"), 2)
			f.sever(one.session)
			two := f.enters(f.open(), f.path("b"), 2).must(f)
			one.blocked(f)
			f.reconnect(one.session)
			f.allLeave([]recipes.Passage{one.must(f), two})
		}},
	}
}

func (f *fixture) doubleBarrier(s recipes.Recipes, path string, size int) recipes.DoubleBarrier {
	f.Helper()
	return must.Get(s.DoubleBarrier(path, recipes.DoubleBarrierConfig{Size: size}))(f)
}

// entering is a member that enters in the background.
type entering struct {
	*pending[recipes.Passage]
	session recipes.Client
	cancel  context.CancelFunc
}

// enters starts a member, and returns when its znode exists.
func (f *fixture) enters(s recipes.Client, path string, size int) *entering {
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

// entered makes size members enter together.
func (f *fixture) entered(path string, size int) []recipes.Passage {
	f.Helper()
	var all []*entering
	for range size {
		all = append(all, f.enters(f.open(), path, size))
	}
	var in []recipes.Passage
	for _, e := range all {
		in = append(in, e.must(f))
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
		l.must(f)
	}
}

func (f *fixture) briefEnter(path string, size int) error {
	f.Helper()
	_, err := f.doubleBarrier(f.open(), path, size).Enter(f.briefly(), nil)
	return err
}
