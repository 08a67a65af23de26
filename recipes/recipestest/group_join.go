package recipestest

import (
	"context"
	"errors"

	"github.com/zkrecipes/zkrecipes/recipes"
)

func groupJoin(f *fixture) {
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
	if one.Token() >= two.Token() {
		f.Errorf("token %d before %d", one.Token(), two.Token())
	}
}

func groupNamed(f *fixture) {
	m := f.join(f.open(), f.path("g"), "ann", "x")
	if m.Znode() != f.path("g", "ann") {
		f.Errorf("the znode is %s", m.Znode())
	}
	if members := f.members(f.open(), f.path("g"), "x"); members[0].Name != "ann" {
		f.Errorf("%+v", members)
	}
	f.must(m.Update(f.ctx, []byte("y")))
	f.must(m.Write(f.ctx))
	f.must(m.Leave(f.ctx))
}

func (f *fixture) takenBy(err error, owner int64, znode string) {
	f.Helper()
	f.is(err, recipes.ErrNodeExists)
	f.isNot(err, recipes.ErrSessionLost, recipes.ErrNotHeld)
	var taken *recipes.TakenError
	if !errors.As(err, &taken) || taken.SessionID != owner || taken.Znode != znode || taken.Since.IsZero() {
		f.Errorf("%v (%+v); want a TakenError of session %#x and %s", err, taken, owner, znode)
	}
}

func groupTaken(f *fixture) {
	a := f.open()
	m := f.join(a, f.path("g"), "ann", "x")
	for _, s := range []recipes.Client{a, f.open()} {
		f.takenBy(errOf(f.group(s, f.path("g"), "ann").Join(f.ctx, []byte("y"))), a.ID(), f.path("g", "ann"))
	}
	f.held(m)
	f.members(a, f.path("g"), "x")
	f.create(f.path("g", "bob"), "persistent")
	f.takenBy(errOf(f.group(a, f.path("g"), "bob").Join(f.ctx, nil)), 0, f.path("g", "bob"))
}

func groupJoinSuspended(f *fixture) {
	s := f.open()
	for _, name := range []string{"", "ann"} {
		g := f.group(s, f.path("g"), name)
		m := suspended(f, s, func() (recipes.Membership, error) { return g.Join(f.ctx, []byte("x")) })
		suspended(f, s, func() (struct{}, error) { return struct{}{}, m.Update(f.ctx, []byte("y")) })
		f.held(m)
	}
	f.members(s, f.path("g"), "y y")
}

func groupJoinCancelled(f *fixture) {
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
}

func groupTooLarge(f *fixture) {
	s := f.open(func(c *recipes.SessionConfig) { c.MaxPacket = 8 << 10 })
	large := make([]byte, 9<<10)
	for _, name := range []string{"", "ann"} {
		f.is(errOf(f.group(s, f.path("g"), name).Join(f.ctx, large)), recipes.ErrTooLarge)
	}
	m := f.join(s, f.path("g"), "", "x")
	f.is(m.Update(f.ctx, large), recipes.ErrTooLarge)
	f.held(m)
	f.members(s, f.path("g"), "x")
}
