package recipestest

import (
	"context"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/recipes"
)

func doubleBarrierLeaveTests() []test {
	return []test{
		{"leave/no call returns before all members leave", func(f *fixture) {
			for _, order := range [][]int{{0, 1, 2}, {2, 1, 0}, {1, 2, 0}} {
				in := f.entered(f.path("b"), 3)
				one, two := f.leaves(in[order[0]]), f.leaves(in[order[1]])
				f.lost(in[order[0]], recipes.ErrReleased)
				one.blocked(f)
				two.blocked(f)
				f.held(in[order[2]])
				f.must(in[order[2]].Leave(f.ctx))
				one.must(f)
				two.must(f)
				f.awaitChildren(f.path("b"), 0)
				f.must(in[0].Leave(f.ctx)) // again
			}
		}},
		{"leave/a barrier can be used many times", func(f *fixture) {
			sessions := []recipes.Client{f.open(), f.open(), f.open()}
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
				p.must(f)
			}
			f.awaitChildren(f.path("b"), 0)
		}},
		{"leave/a member whose session ends inside does not block the others", func(f *fixture) {
			sessions := []recipes.Client{f.open(), f.open(), f.open()}
			var all []*entering
			for _, s := range sessions {
				all = append(all, f.enters(s, f.path("b"), 3))
			}
			lowest, middle, highest := all[0].must(f), all[1].must(f), all[2].must(f)
			one := f.leaves(middle)
			one.blocked(f)
			f.expire(sessions[2])
			f.lost(highest, recipes.ErrExpired)
			one.blocked(f)
			f.expire(sessions[0])
			one.must(f)
			f.is(lowest.Leave(f.ctx), recipes.ErrNotHeld, recipes.ErrExpired)
		}},
		// CURATOR-233 and CURATOR-536: a leave with a timeout spun for ever.
		{"leave/a member whose Leave is cancelled does not block the others", func(f *fixture) {
			in := f.entered(f.path("b"), 3)
			for _, p := range in[:2] {
				f.is(p.Leave(f.briefly()), context.DeadlineExceeded)
				f.awaitNode(p.Znode(), false)
			}
			again := f.leaves(in[0])
			again.blocked(f)
			f.is(in[2].Leave(f.ended()), context.Canceled)
			again.must(f)
			f.must(in[1].Leave(f.ctx))
		}},
		{"leave/a call that the server refuses can be repeated", func(f *fixture) {
			in := f.entered(f.path("b"), 2)
			f.acl(f.path("b"), zk.PermRead|zk.PermAdmin)
			for range 2 {
				f.is(in[1].Leave(f.ctx), recipes.ErrAccessDenied)
				f.lost(in[1], recipes.ErrReleased)
			}
			f.acl(f.path("b"), zk.PermAll)
			f.allLeave(in)
			f.awaitChildren(f.path("b"), 0)
		}},
		// Curator PR 416: entering and leaving shared a watcher, so a late ready released leavers.
		{"leave/a later ready does not let a member leave early", func(f *fixture) {
			in := f.entered(f.path("b"), 2)
			one := f.leaves(in[1])
			f.awaitNode(in[1].Znode(), false)
			must.Get(f.outside.Set(f.path("b", "ready"), []byte("late"), -1))(f)
			f.remove(f.path("b", "ready"))
			f.create(f.path("b", "ready"), "later")
			one.blocked(f)
			f.must(in[0].Leave(f.ctx))
			one.must(f)
		}},
		{"leave/a departure during a lost connection is not missed", func(f *fixture) {
			a, b := f.open(), f.open()
			one, two := f.enters(a, f.path("b"), 2), f.enters(b, f.path("b"), 2)
			lower, higher := one.must(f), two.must(f)
			l := f.leaves(higher)
			f.awaitNode(higher.Znode(), false)
			f.sever(b)
			f.must(lower.Leave(f.ctx))
			l.blocked(f)
			f.reconnect(b)
			l.must(f)
		}},
		{"leave/a member whose znode is deleted waits for the others, and gets ErrRemoved", func(f *fixture) {
			in := f.entered(f.path("b"), 2)
			f.remove(in[0].Znode())
			f.lost(in[0], recipes.ErrRemoved)
			one := f.leaves(in[0])
			one.blocked(f)
			f.must(in[1].Leave(f.ctx))
			f.is(one.failure(f), recipes.ErrRemoved, recipes.ErrNotHeld)
		}},
		{"leave/the loss of the session ends the wait", func(f *fixture) {
			s := f.open()
			one := f.enters(s, f.path("b"), 2)
			two := f.enters(f.open(), f.path("b"), 2).must(f)
			l := f.leaves(one.must(f))
			f.must(s.Close(f.ctx))
			f.is(l.failure(f), recipes.ErrSessionLost, recipes.ErrClosed, recipes.ErrNotHeld)
			f.must(two.Leave(f.ctx))
		}},
	}
}
