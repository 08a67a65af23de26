package recipestest

import (
	"context"
	"time"

	"github.com/zkrecipes/zkrecipes/recipes"
)

func revocableToo(c *recipes.PriorityLockConfig) { c.Revocable = true }

func asks(c *recipes.PriorityLockConfig) { c.Ask = true }

func priorityRevokeTests() []test {
	return []test{
		{"ask/only holders with a lower priority are asked", func(f *fixture) {
			s := f.open()
			same := f.priorityHeld(s, recipes.Reading, at(5), revocableToo)
			low := f.priorityHeld(f.open(), recipes.Reading, at(6), revocableToo)
			w := f.priorityWaits(f.open(), recipes.Writing, at(5), asks)
			f.await(low.Revoked(), "the request")
			w.blocked(f)
			f.must(low.Release(f.ctx))
			f.notAsked(same)
			f.must(same.Release(f.ctx))
			w.must(f)
		}},
		{"ask/a holder that is not revocable is not asked", func(f *fixture) {
			h := f.priorityHeld(f.open(), recipes.Writing, at(9), func(c *recipes.PriorityLockConfig) { c.Data = []byte("mine") })
			w := f.priorityWaits(f.open(), recipes.Writing, at(0), asks)
			f.notAsked(h)
			f.must(h.Release(f.ctx))
			w.must(f)
		}},
		{"revoke/a request to a waiter is kept when it is granted", func(f *fixture) {
			s := f.open()
			h := f.priorityHeld(s, recipes.Writing)
			w := f.priorityWaits(f.open(), recipes.Reading, revocableToo, func(c *recipes.PriorityLockConfig) { c.Data = []byte("me") })
			l := f.priority(s)
			f.must(l.Revoke(f.ctx, w.place.Znode))
			f.must(h.Release(f.ctx))
			g := w.must(f)
			f.await(g.Revoked(), "the request")
			data, _ := f.read(g.Znode())
			f.failIf(data != "unlock\nzkrecipes: revocable\nme", "the znode has data %q", data)
			f.must(l.Revoke(f.ctx, w.place.Znode)) // by the name that it had as a waiter
			f.must(g.Release(f.ctx))
			f.must(l.Revoke(f.ctx, w.place.Znode))
			f.is(l.Revoke(f.ctx, f.path("a", "config")), recipes.ErrInvalid)
		}},
		{"revoke/a holder can be named by the znode that waited", func(f *fixture) {
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
		}},
		{"revoke/a contender that is not revocable is ErrNotRevocable", func(f *fixture) {
			s := f.open()
			h := f.priorityHeld(s, recipes.Writing)
			w := f.priorityWaits(f.open(), recipes.Writing)
			for _, znode := range []string{h.Znode(), w.place.Znode} {
				f.is(f.priority(s).Revoke(f.ctx, znode), recipes.ErrNotRevocable)
				f.is(f.priority(s).RevokeForced(f.ctx, znode), recipes.ErrNotRevocable)
			}
			f.held(h)
			w.blocked(f)
		}},
		{"revoke/RevokeForced ends the hold after its grace, and its writes are refused", func(f *fixture) {
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
		}},
		{"HandOff/the successor is granted before higher priorities", func(f *fixture) {
			h := f.priorityHeld(f.open(), recipes.Writing, at(5))
			best := f.priorityWaits(f.open(), recipes.Writing, at(0))
			second := f.priorityWaits(f.open(), recipes.Reading, at(1))
			successor := f.priorityWaits(f.open(), recipes.Writing, at(99))
			f.must(h.HandOff(f.ctx, successor.place.Znode))
			g := successor.must(f)
			best.blocked(f)
			second.blocked(f)
			data, _ := f.read(f.path("a"))
			f.failIf(data != "", "the path still names a successor after its grant: %q", data)
			f.must(g.Release(f.ctx))
			f.must(best.must(f).Release(f.ctx))
			second.must(f)
		}},
		{"HandOff/a successor that leaves blocks no other waiter", func(f *fixture) {
			a, b := f.priorityHeld(f.open(), recipes.Reading, at(5)), f.priorityHeld(f.open(), recipes.Reading, at(5))
			successor := f.priorityWaits(f.open(), recipes.Writing, at(99))
			best := f.priorityWaits(f.open(), recipes.Writing, at(0))
			f.must(a.HandOff(f.ctx, successor.place.Znode))
			in := get(f, f.priority(f.open()).Contenders)
			f.failIf(len(in) != 3 || !in[1].Successor || in[1].Znode != successor.place.Znode, "the wait queue is %+v", in)
			successor.cancel()
			successor.result(f)
			f.must(b.Release(f.ctx))
			best.must(f)
		}},
		{"HandOff/only a waiter can be the successor", func(f *fixture) {
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
			f.held(h)
		}},
		{"HandOff/there is one successor at a time", func(f *fixture) {
			a, b := f.priorityHeld(f.open(), recipes.Reading), f.priorityHeld(f.open(), recipes.Reading)
			first, second := f.priorityWaits(f.open(), recipes.Writing, at(8)), f.priorityWaits(f.open(), recipes.Writing, at(7))
			f.must(a.HandOff(f.ctx, first.place.Znode))
			f.is(b.HandOff(f.ctx, second.place.Znode), recipes.ErrContended)
			f.held(b)
			f.must(b.Release(f.ctx))
			f.must(first.must(f).Release(f.ctx))
			second.must(f)
		}},
		{"HandOff/a lost hold cannot be handed off", func(f *fixture) {
			s := f.open()
			h := f.priorityHeld(s, recipes.Writing)
			w := f.priorityWaits(f.open(), recipes.Writing)
			f.remove(h.Znode())
			g := w.must(f)
			next := f.priorityWaits(f.open(), recipes.Writing)
			f.is(h.HandOff(f.ctx, next.place.Znode), recipes.ErrNotHeld, recipes.ErrRemoved)
			f.held(g)
			next.blocked(f)
		}},
		{"HandOff/the call ends the hold", func(f *fixture) {
			h := f.priorityHeld(f.open(), recipes.Writing)
			w := f.priorityWaits(f.open(), recipes.Writing)
			h.Done()
			f.must(h.HandOff(f.ctx, w.place.Znode))
			f.lost(h, recipes.ErrReleased)
			f.is(h.Write(f.ctx), recipes.ErrNotHeld)
			f.is(h.HandOff(f.ctx, w.place.Znode), recipes.ErrNotHeld)
			f.held(w.must(f))
		}},
	}
}
