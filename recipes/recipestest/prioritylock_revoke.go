package recipestest

import (
	"context"
	"time"

	"github.com/zkrecipes/zkrecipes/recipes"
)

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
	if _, stat := f.read(same.Znode()); stat.Version != 0 { // a request would be written there
		f.Errorf("a holder of the same priority was asked to give way")
	}
	f.must(same.Release(f.ctx))
	w.must(f)
}

func priorityAskNot(f *fixture) {
	h := f.priorityHeld(f.open(), recipes.Writing, at(9), func(c *recipes.PriorityLockConfig) { c.Data = []byte("mine") })
	w := f.priorityWaits(f.open(), recipes.Writing, at(0), asks)
	if data, stat := f.read(h.Znode()); data != "mine" || stat.Version != 0 {
		f.Errorf("the holder's znode has data %q", data)
	}
	f.must(h.Release(f.ctx))
	w.must(f)
}

func priorityRevokeWaiter(f *fixture) {
	s := f.open()
	h := f.priorityHeld(s, recipes.Writing)
	w := f.priorityWaits(f.open(), recipes.Reading, revocableToo, func(c *recipes.PriorityLockConfig) { c.Data = []byte("me") })
	l := f.priority(s)
	f.must(l.Revoke(f.ctx, w.place.Znode))
	f.must(h.Release(f.ctx))
	g := w.must(f)
	f.await(g.Revoked(), "the request")
	if data, _ := f.read(g.Znode()); data != "unlock\nzkrecipes: revocable\nme" {
		f.Errorf("the znode has data %q", data)
	}
	f.must(l.Revoke(f.ctx, w.place.Znode)) // by its former name
	f.must(g.Release(f.ctx))
	f.must(l.Revoke(f.ctx, w.place.Znode))
	f.is(l.Revoke(f.ctx, f.path("a", "config")), recipes.ErrInvalid)
}

func priorityRevokeByOldName(f *fixture) {
	s := f.open()
	l := f.priority(s)
	for _, revoke := range []func(context.Context, string) error{l.Revoke, l.RevokeForced} {
		h := f.priorityHeld(s, recipes.Writing)
		w := f.priorityWaits(f.open(), recipes.Writing, func(c *recipes.PriorityLockConfig) { c.Revocable, c.Grace = true, patience })
		f.must(h.Release(f.ctx))
		g := w.must(f)
		revoked := startErr(f, func() error { return revoke(f.ctx, w.place.Znode) })
		f.await(g.Revoked(), "the request")
		f.must(g.Release(f.ctx)) // RevokeForced waits for the release
		revoked.must(f)
		f.must(revoke(f.ctx, w.place.Znode))
	}
}

func priorityRevokeNotAllowed(f *fixture) {
	s := f.open()
	h := f.priorityHeld(s, recipes.Writing)
	w := f.priorityWaits(f.open(), recipes.Writing)
	for _, znode := range []string{h.Znode(), w.place.Znode} {
		f.is(f.priority(s).Revoke(f.ctx, znode), recipes.ErrNotRevocable)
		f.is(f.priority(s).RevokeForced(f.ctx, znode), recipes.ErrNotRevocable)
	}
	f.held(h)
	w.blocked(f)
}

func priorityForced(f *fixture) {
	s := f.open()
	h := f.priorityHeld(f.open(), recipes.Writing, at(9), func(c *recipes.PriorityLockConfig) { c.Revocable, c.Grace = true, 20*time.Millisecond })
	w := f.priorityWaits(s, recipes.Writing)
	f.must(f.priority(s).Revoke(f.ctx, h.Znode()))
	f.await(h.Revoked(), "the request") // a busy machine may read it only after the short grace
	f.must(f.priority(s).RevokeForced(f.ctx, h.Znode()))
	f.lost(h, recipes.ErrRevoked)
	g := w.must(f)
	f.is(h.Write(f.ctx, recipes.Create(f.path("a", "late"), nil)), recipes.ErrNotHeld)
	f.is(f.priority(s).RevokeForced(f.ctx, g.Znode()), recipes.ErrNotRevocable)
	f.held(g)
}
