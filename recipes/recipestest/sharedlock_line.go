package recipestest

import (
	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// sharedForeign: the other library names its znodes as the source text does, and its data does not
// say whether a holder is revocable.
func sharedForeign(f *fixture) {
	f.create(f.path("a"), "")
	join := func(name string) string {
		znode, err := f.outside.Create(f.path("a", name), []byte("theirs"), zk.FlagEphemeral|zk.FlagSequence, zk.WorldACL(zk.PermAll))
		f.must(err)
		return znode
	}
	reader := join("guid-read-")
	h := f.reads(f.open(), f.path("a"))
	w := f.sharedWaits(f.open(), f.path("a"), recipes.Writing)
	writer := join("write-")
	r := f.sharedWaits(f.open(), f.path("a"), recipes.Reading)
	f.must(h.Release(f.ctx))
	w.blocked(f)
	f.remove(reader)
	g := w.must(f)
	f.must(g.Downgrade(f.ctx))
	r.blocked(f) // behind the other library's writer
	f.must(g.Release(f.ctx))
	r.blocked(f)
	f.remove(writer)
	r.must(f)
	f.is(f.shared(f.open(), f.path("a")).Revoke(f.ctx, join("x-read-")), recipes.ErrNotRevocable)
}

func sharedSevered(f *fixture) {
	h := f.writes(f.open(), f.path("a"))
	s := f.open()
	r := f.sharedWaits(s, f.path("a"), recipes.Reading)
	f.sever(s)
	f.must(h.Downgrade(f.ctx))
	r.blocked(f)
	f.relay(s).Restore()
	g := r.must(f)
	if g.Znode() != r.place.Znode {
		f.Errorf("granted as %s; joined as %s", g.Znode(), r.place.Znode)
	}
	f.held(h)
}

func sharedExpired(f *fixture) {
	s := f.open()
	a, b := f.reads(s, f.path("a")), f.reads(f.open(), f.path("a"))
	w := f.sharedWaits(f.open(), f.path("a"), recipes.Writing)
	f.expire(s)
	f.lost(a, recipes.ErrExpired, recipes.ErrSessionLost)
	w.blocked(f)
	f.must(b.Release(f.ctx))
	w.must(f)
}
