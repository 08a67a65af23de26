package recipestest

import (
	"context"
	"slices"

	"github.com/zkrecipes/zkrecipes/recipes"
)

func doubleEnter(f *fixture) {
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

// Curator GH-1290, kazoo: a stale ready let a lone member in.
func doubleStaleReady(f *fixture) {
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
}

// Netflix/curator#99, kazoo: the ready znode was counted as a member, or ignored.
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

// etcd#14604: surplus members broke the barrier.
func doubleSurplus(f *fixture) {
	in := f.entered(f.path("b"), 2)
	three, four := f.enters(f.open(), f.path("b"), 2), f.enters(f.open(), f.path("b"), 2)
	f.is(f.briefEnter(f.path("b"), 2), context.DeadlineExceeded)
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
}

func doubleCancelled(f *fixture) {
	one := f.enters(f.open(), f.path("b"), 2)
	one.cancel()
	f.is(one.failure(f), context.Canceled)
	f.awaitChildren(f.path("b"), 0)
	two := f.enters(f.open(), f.path("b"), 2)
	f.is(f.briefEnter(f.path("c"), 2), context.DeadlineExceeded)
	two.blocked(f)
	three := f.enters(f.open(), f.path("b"), 2)
	f.allLeave([]recipes.Passage{two.must(f), three.must(f)})
}

func doubleDied(f *fixture) {
	one := f.enters(f.open(), f.path("b"), 2)
	f.expire(one.session)
	f.is(one.failure(f), recipes.ErrSessionLost, recipes.ErrExpired)
	f.awaitChildren(f.path("b"), 0)
	two := f.enters(f.open(), f.path("b"), 2)
	two.blocked(f)
	three := f.enters(f.open(), f.path("b"), 2)
	f.allLeave([]recipes.Passage{two.must(f), three.must(f)})
}

func doubleRemoved(f *fixture) {
	one := f.enters(f.open(), f.path("b"), 2)
	f.remove(f.path("b", f.children(f.path("b"))[0]))
	f.is(one.failure(f), recipes.ErrRemoved)
}

func doubleReconnects(f *fixture) {
	one := f.enters(f.open(), f.path("b"), 2)
	f.sever(one.session)
	two := f.enters(f.open(), f.path("b"), 2).must(f)
	one.blocked(f)
	f.reconnect(one.session)
	f.allLeave([]recipes.Passage{one.must(f), two})
}
