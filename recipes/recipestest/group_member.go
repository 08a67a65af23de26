package recipestest

import (
	"context"
	"errors"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/zkrecipes/recipes"
)

func groupUpdate(f *fixture) {
	m := f.join(f.open(), f.path("g"), "", "one")
	for _, data := range []string{"two", "", "three"} {
		f.must(m.Update(f.ctx, []byte(data)))
		f.members(f.open(), f.path("g"), data)
	}
	// Update replaces data that another client has written.
	_, err := f.outside.Set(m.Znode(), []byte("theirs"), -1)
	f.must(err)
	f.must(m.Update(f.ctx, []byte("four")))
	f.must(m.Write(f.ctx))
	f.members(f.open(), f.path("g"), "four")
	f.is(m.Update(f.ended(), nil), context.Canceled)
	f.held(m)
}

func groupLeave(f *fixture) {
	s := f.open()
	for range 2 {
		m := f.join(s, f.path("g"), "ann", "x")
		f.must(m.Leave(f.ctx))
		f.members(s, f.path("g"), "")
		f.lost(m, recipes.ErrReleased)
		f.is(m.Update(f.ctx, nil), recipes.ErrReleased, recipes.ErrNotHeld)
	}
}

func groupLeaveRefused(f *fixture) {
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
}

func groupExpired(f *fixture) {
	s := f.open()
	m := f.join(s, f.path("g"), "ann", "x")
	f.expire(s)
	f.lost(m, recipes.ErrExpired, recipes.ErrSessionLost)
	f.awaitChildren(f.path("g"), 0)
	f.is(m.Update(f.ctx, nil), recipes.ErrNotHeld, recipes.ErrExpired)
	f.is(m.Leave(f.ctx), recipes.ErrNotHeld, recipes.ErrExpired)
	f.is(errOf(f.group(s, f.path("g"), "").Join(f.ctx, nil)), recipes.ErrExpired)
	f.join(f.open(), f.path("g"), "ann", "again") // the application has to join again
}

func groupRemoved(f *fixture) {
	s := f.open()
	m := f.join(s, f.path("g"), "", "x")
	f.remove(m.Znode())
	f.lost(m, recipes.ErrRemoved)
	f.is(m.Update(f.ctx, nil), recipes.ErrRemoved)
	f.is(m.Leave(f.ctx), recipes.ErrRemoved)
	f.is(m.Write(f.ctx), recipes.ErrRemoved)
	f.must(s.Err())
}

func groupReplaced(f *fixture) {
	s := f.open()
	m := f.join(s, f.path("g"), "ann", "old")
	f.remove(m.Znode())
	f.lost(m, recipes.ErrRemoved)
	next := f.join(f.open(), f.path("g"), "ann", "new")
	f.is(m.Update(f.ctx, []byte("late")), recipes.ErrRemoved)
	f.is(m.Leave(f.ctx), recipes.ErrRemoved)
	f.members(s, f.path("g"), "new")
	f.held(next)
}

func groupWrite(f *fixture) {
	m := f.join(f.open(), f.path("g"), "ann", "x")
	f.must(m.Write(f.ctx, recipes.Create(f.path("made"), []byte("1"))))
	err := m.Write(f.ctx, recipes.Create(f.path("made"), nil))
	var refused *recipes.WriteError
	if f.is(err, recipes.ErrNodeExists); !errors.As(err, &refused) || refused.Index != 0 {
		f.Errorf("%v; want a WriteError of the operation", err)
	}
	f.must(m.Leave(f.ctx))
	f.is(m.Write(f.ctx, recipes.Delete(f.path("made"), recipes.AnyVersion)), recipes.ErrNotHeld)
	if !f.exists(f.path("made")) {
		f.Error("a member that has left has written")
	}
}
