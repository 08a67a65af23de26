package recipestest

import (
	"context"
	"errors"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/recipes"
)

func (f *fixture) takenBy(err error, owner int64, znode string) {
	f.Helper()
	f.is(err, recipes.ErrNodeExists)
	f.isNot(err, recipes.ErrSessionLost, recipes.ErrNotHeld)
	if taken, ok := errors.AsType[*recipes.TakenError](err); !ok || taken.SessionID != owner || taken.Znode != znode || taken.Since.IsZero() {
		f.Errorf("%v (%+v); want a TakenError of session %#x and %s", err, taken, owner, znode)
	}
}

func membershipTests() []test {
	return []test{
		{"join/members are returned with their data, the oldest first", func(f *fixture) {
			a, b := f.open(), f.open()
			one := f.join(a, f.path("g"), "", "one")
			two := f.join(b, f.path("g"), "", "two")
			f.join(a, f.path("g"), "", "three")
			for _, m := range []recipes.Membership{one, two} {
				f.held(m)
			}
			members := f.members(b, f.path("g"), "one two three")
			if got := members[0]; got.Znode != one.Znode() || got.Token != one.Token() || got.SessionID != a.ID() ||
				got.Since.IsZero() || got.Znode != f.path("g", got.Name) {
				f.Errorf("%+v; want %s of session %#x", got, one.Znode(), a.ID())
			}
			f.failIf(one.Token() >= two.Token(), "token %d before %d", one.Token(), two.Token())
		}},
		{"join/the application can choose the name", func(f *fixture) {
			m := f.join(f.open(), f.path("g"), "ann", "x")
			f.failIf(m.Znode() != f.path("g", "ann"), "the znode is %s", m.Znode())
			members := f.members(f.open(), f.path("g"), "x")
			f.failIf(members[0].Name != "ann", "%+v", members)
			f.must(m.Update(f.ctx, []byte("y")))
			f.must(m.Write(f.ctx))
			f.must(m.Leave(f.ctx))
		}},
		{"join/a taken name is an error that names its session, which can be the same one", func(f *fixture) {
			a := f.open()
			m := f.join(a, f.path("g"), "ann", "x")
			for _, s := range []recipes.Client{a, f.open()} {
				f.takenBy(errOf(f.group(s, f.path("g"), "ann").Join(f.ctx, []byte("y"))), a.ID(), f.path("g", "ann"))
			}
			f.held(m)
			f.members(a, f.path("g"), "x")
			f.create(f.path("g", "bob"), "persistent")
			f.takenBy(errOf(f.group(a, f.path("g"), "bob").Join(f.ctx, nil)), 0, f.path("g", "bob"))
		}},
		{"join/Join and Update wait for the connection", func(f *fixture) {
			s := f.open()
			for _, name := range []string{"", "ann"} {
				g := f.group(s, f.path("g"), name)
				m := suspended(f, s, func() (recipes.Membership, error) { return g.Join(f.ctx, []byte("x")) })
				suspended(f, s, func() (struct{}, error) { return struct{}{}, m.Update(f.ctx, []byte("y")) })
				f.held(m)
			}
			f.members(s, f.path("g"), "y y")
		}},
		{"join/a cancelled join leaves nothing", func(f *fixture) {
			s := f.open()
			for _, name := range []string{"", "ann"} {
				f.is(errOf(f.group(s, f.path("g"), name).Join(f.ended(), nil)), context.Canceled)
			}
			f.sever(s)
			for _, name := range []string{"", "ann"} {
				f.is(errOf(f.group(s, f.path("g"), name).Join(f.briefly(), nil)), context.DeadlineExceeded)
			}
			f.reconnect(s)
			f.awaitChildren(f.path("g"), 0)
		}},
		{"join/data that is too large is ErrTooLarge", func(f *fixture) {
			s := f.open(func(c *recipes.SessionConfig) { c.MaxPacket = 8 << 10 })
			large := make([]byte, 9<<10)
			for _, name := range []string{"", "ann"} {
				f.is(errOf(f.group(s, f.path("g"), name).Join(f.ctx, large)), recipes.ErrTooLarge)
			}
			m := f.join(s, f.path("g"), "", "x")
			f.is(m.Update(f.ctx, large), recipes.ErrTooLarge)
			f.held(m)
			f.members(s, f.path("g"), "x")
		}},
		{"update/other sessions read the new data", func(f *fixture) {
			m := f.join(f.open(), f.path("g"), "", "one")
			for _, data := range []string{"two", "", "three"} {
				f.must(m.Update(f.ctx, []byte(data)))
				f.members(f.open(), f.path("g"), data)
			}
			// Update replaces data that another client has written.
			must.Get(f.outside.Set(m.Znode(), []byte("theirs"), -1))(f)
			f.must(m.Update(f.ctx, []byte("four")))
			f.must(m.Write(f.ctx))
			f.members(f.open(), f.path("g"), "four")
			f.is(m.Update(f.ended(), nil), context.Canceled)
			f.held(m)
		}},
		{"leave/the member's znode is deleted, and its name is free", func(f *fixture) {
			s := f.open()
			for range 2 {
				m := f.join(s, f.path("g"), "ann", "x")
				f.must(m.Leave(f.ctx))
				f.members(s, f.path("g"), "")
				f.lost(m, recipes.ErrReleased)
				f.is(m.Update(f.ctx, nil), recipes.ErrReleased, recipes.ErrNotHeld)
			}
		}},
		{"leave/a call that the server refuses can be repeated", func(f *fixture) {
			s := f.open()
			m := f.join(s, f.path("g"), "ann", "x")
			f.acl(f.path("g"), zk.PermRead|zk.PermAdmin)
			for range 2 {
				err := m.Leave(f.ctx)
				f.is(err, recipes.ErrAccessDenied)
				f.isNot(err, recipes.ErrNotHeld)
				f.lost(m, recipes.ErrReleased)
			}
			f.acl(f.path("g"), zk.PermAll)
			for range 2 {
				f.must(m.Leave(f.ctx))
			}
			f.members(s, f.path("g"), "")
		}},
		{"lost/a member whose session expires is lost, and does not join again", func(f *fixture) {
			s := f.open()
			m := f.join(s, f.path("g"), "ann", "x")
			f.expire(s)
			f.lost(m, recipes.ErrExpired, recipes.ErrSessionLost)
			f.awaitChildren(f.path("g"), 0)
			f.is(m.Update(f.ctx, nil), recipes.ErrNotHeld, recipes.ErrExpired)
			f.is(m.Leave(f.ctx), recipes.ErrNotHeld, recipes.ErrExpired)
			f.is(errOf(f.group(s, f.path("g"), "").Join(f.ctx, nil)), recipes.ErrExpired)
			f.join(f.open(), f.path("g"), "ann", "again") // the application has to join again
		}},
		{"lost/a member whose znode is deleted gets ErrRemoved", func(f *fixture) {
			s := f.open()
			m := f.join(s, f.path("g"), "", "x")
			f.remove(m.Znode())
			f.lost(m, recipes.ErrRemoved)
			f.is(m.Update(f.ctx, nil), recipes.ErrRemoved)
			f.is(m.Leave(f.ctx), recipes.ErrRemoved)
			f.is(m.Write(f.ctx), recipes.ErrRemoved)
			f.must(s.Err())
		}},
		{"lost/a lost member does not change a later member with its name", func(f *fixture) {
			s := f.open()
			m := f.join(s, f.path("g"), "ann", "old")
			f.remove(m.Znode())
			f.lost(m, recipes.ErrRemoved)
			next := f.join(f.open(), f.path("g"), "ann", "new")
			f.is(m.Update(f.ctx, []byte("late")), recipes.ErrRemoved)
			f.is(m.Leave(f.ctx), recipes.ErrRemoved)
			f.members(s, f.path("g"), "new")
			f.held(next)
		}},
		{"write/a guarded write requires the membership", func(f *fixture) {
			m := f.join(f.open(), f.path("g"), "ann", "x")
			f.must(m.Write(f.ctx, recipes.Create(f.path("made"), []byte("1"))))
			err := m.Write(f.ctx, recipes.Create(f.path("made"), nil))
			var refused *recipes.WriteError
			if f.is(err, recipes.ErrNodeExists); !errors.As(err, &refused) || refused.Index != 0 {
				f.Errorf("%v; want a WriteError of the operation", err)
			}
			f.must(m.Leave(f.ctx))
			f.is(m.Write(f.ctx, recipes.Delete(f.path("made"), recipes.AnyVersion)), recipes.ErrNotHeld)
			f.failIf(!f.exists(f.path("made")), "a member that has left has written")
		}},
	}
}
