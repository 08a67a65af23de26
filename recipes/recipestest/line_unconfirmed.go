package recipestest

import (
	"errors"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// unconfirmedTests are about recipes.LockConfig.Unconfirmed. That Done closes within a
// round trip where a server lags is tested beside the implementation.
func unconfirmedTests() []kindTest {
	return []kindTest{
		{"unconfirmed, the leader is asked beside the grant", askedBeside},
		{"unconfirmed, at most one is granted, and tokens grow", exclusionUnconfirmed},
		{"a waiter whose znode went with the release is told", goneWithTheRelease},
	}
}

// askedBeside counts one read more than a confirmed handoff costs: the look.
func askedBeside(f *fixture, k kind) {
	ahead := k.granted(f, f.open(), f.path("a"))
	s := f.open()
	w := k.waitsWith(f, s, f.path("a"), options{unconfirmed: true})
	k.watches(f, s, f.path("a"))
	before := f.stats(s)
	f.must(ahead.GiveBack(f.ctx))
	g := w.value1(f)
	reads := int64(2) // of its znode: after the listing, and the look
	if k.hands() {
		reads = 1
	}
	f.reach(s, func(c recipes.Stats) bool { return c.ByKind["getData"] >= before.ByKind["getData"]+reads })
	f.must(g.Write(f.ctx)) // answered after the look
	f.held(g)
	f.must(g.GiveBack(f.ctx))
}

func exclusionUnconfirmed(f *fixture, k kind) { excludes(f, k, options{unconfirmed: true}) }

// goneWithTheRelease has the waiter learn of a release, and of the deletion of its
// znode right behind it, at the same moment.
func goneWithTheRelease(f *fixture, k kind) {
	for _, unconfirmed := range []bool{false, true} {
		path := f.path("confirmed")
		if unconfirmed {
			path = f.path("unconfirmed")
		}
		ahead := k.granted(f, f.open(), path)
		s := f.open()
		w := k.waitsWith(f, s, path, options{unconfirmed: unconfirmed})
		k.watches(f, s, path)
		f.proxy.holdReplies(s.ID())
		f.must(ahead.GiveBack(f.ctx))
		f.remove(w.place.Znode)
		f.proxy.restore(s.ID())
		g, err := w.result(f)
		switch {
		case err != nil:
			f.is(err, recipes.ErrRemoved)
		case unconfirmed:
			f.lost(g, recipes.ErrRemoved)
		default:
			f.Errorf("granted %s, which is gone", g.Znode())
		}
		if errors.Is(err, recipes.ErrSessionLost) {
			f.Fatal(err)
		}
	}
}
