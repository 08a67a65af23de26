package recipestest

import (
	"context"
	"errors"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// shows receives snapshots until one equals want. Others may come first: the members of a
// snapshot are read one after the other.
func (f *fixture) shows(snapshots <-chan []recipes.Member, want string) []recipes.Member {
	f.Helper()
	for {
		members := receive(f, snapshots, "the group "+want)
		if showMembers(members) == want {
			return members
		}
	}
}

func (f *fixture) watchGroup(s recipes.Recipes, path string) <-chan []recipes.Member {
	f.Helper()
	return get(f, f.group(s, path, "").Watch)
}

func groupWatch(f *fixture) {
	snapshots := f.watchGroup(f.open(), f.path("g"))
	if first := receive(f, snapshots, "the first"); len(first) != 0 {
		f.Errorf("%+v at first", first)
	}
	s := f.open()
	one := f.join(s, f.path("g"), "", "one")
	f.shows(snapshots, "one")
	two := f.join(f.open(), f.path("g"), "", "two")
	f.shows(snapshots, "one two")
	f.must(one.Update(f.ctx, []byte("eins")))
	f.shows(snapshots, "eins two")
	f.must(two.Leave(f.ctx))
	f.shows(snapshots, "eins")
	f.must(s.Close(f.ctx))
	f.shows(snapshots, "")
}

func groupWatchSlowly(f *fixture) {
	s := f.open()
	snapshots := f.watchGroup(f.open(), f.path("g"))
	m := f.join(s, f.path("g"), "", "0")
	for range 5 {
		f.must(f.join(s, f.path("g"), "", "x").Leave(f.ctx))
	}
	f.must(m.Update(f.ctx, []byte("last")))
	f.shows(snapshots, "last")
}

func groupWatchReconnects(f *fixture) {
	s := f.open()
	one := f.join(f.open(), f.path("g"), "", "one")
	snapshots := f.watchGroup(s, f.path("g"))
	f.shows(snapshots, "one")
	f.sever(s)
	f.join(f.open(), f.path("g"), "", "two")
	f.must(one.Update(f.ctx, []byte("eins")))
	f.reconnect(s)
	f.shows(snapshots, "eins two")
}

func groupWatchPath(f *fixture) {
	snapshots := f.watchGroup(f.open(), f.path("g"))
	receive(f, snapshots, "the first")
	s := f.open()
	for _, data := range []string{"one", "two"} {
		m := f.join(s, f.path("g"), "", data)
		f.shows(snapshots, data)
		f.must(m.Leave(f.ctx))
		f.shows(snapshots, "")
		// The server may already have deleted the empty container.
		if err := f.outside.Delete(f.path("g"), -1); err != nil && !errors.Is(err, zk.ErrNoNode) {
			f.Fatal(err)
		}
	}
}

func groupWatchEnds(f *fixture) {
	s := f.open()
	ctx, cancel := context.WithCancel(f.ctx)
	g := f.group(s, f.path("g"), "")
	one, err := g.Watch(ctx)
	f.must(err)
	two := f.watchGroup(s, f.path("g"))
	three := f.watchGroup(f.open(), f.path("g"))
	cancel()
	drained(f, one, "the cancelled channel")
	f.expire(s)
	drained(f, two, "the channel of an expired session")
	receive(f, three, "the other session's")
	f.is(errOf(g.Watch(f.ctx)), recipes.ErrExpired)
}
