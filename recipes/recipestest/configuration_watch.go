package recipestest

import (
	"context"
	"fmt"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// turns receives entries until one has this value.
func (f *fixture) turns(entries <-chan recipes.Entry, value string, none bool) {
	f.Helper()
	for {
		if e := receive(f, entries, "the value "+value); string(e.Value) == value && e.None() == none {
			return
		}
	}
}

func (f *fixture) watchKey(c recipes.Configuration, key string) <-chan recipes.Entry {
	f.Helper()
	entries, err := c.Watch(f.ctx, key)
	f.must(err)
	return entries
}

func configWatch(f *fixture) {
	c := f.config(f.open(), f.path("c"))
	entries := f.watchKey(f.config(f.open(), f.path("c")), "a/b")
	f.turns(entries, "", true)
	for _, value := range []string{"one", "two"} {
		f.set(c, "a/b", value, recipes.AnyRevision)
		f.turns(entries, value, false)
		f.set(c, "a/b", value+" more", recipes.AnyRevision)
		f.turns(entries, value+" more", false)
		f.must(c.Delete(f.ctx, "a/b", recipes.AnyRevision))
		f.turns(entries, "", true)
	}
}

func configWatchSlowly(f *fixture) {
	c := f.config(f.open(), f.path("c"))
	entries := f.watchKey(f.config(f.open(), f.path("c")), "a")
	for i := range 8 {
		f.set(c, "a", fmt.Sprint(i), recipes.AnyRevision)
	}
	f.turns(entries, "7", false)
}

func configWatchReconnects(f *fixture) {
	s := f.open()
	c := f.config(f.open(), f.path("c"))
	f.set(c, "a", "1", recipes.AnyRevision)
	entries := f.watchKey(f.config(s, f.path("c")), "a")
	f.turns(entries, "1", false)
	tree := get(f, f.config(s, f.path("c")).WatchTree)
	receive(f, tree, "the tree")
	f.sever(s)
	f.set(c, "a", "2", recipes.AnyRevision)
	f.reconnect(s)
	f.turns(entries, "2", false)
	for showEntries(receive(f, tree, "the tree")) != "= a=2" {
	}
}

func configWatchTree(f *fixture) {
	c := f.config(f.open(), f.path("c"))
	tree := get(f, f.config(f.open(), f.path("c")).WatchTree)
	if first := receive(f, tree, "the tree"); len(first) != 0 {
		f.Errorf("%+v", first)
	}
	becomes := func(want string) {
		f.Helper()
		for showEntries(receive(f, tree, "the tree "+want)) != want {
		}
	}
	f.set(c, "a", "1", recipes.AnyRevision)
	becomes("= a=1")
	f.set(c, "b/c", "2", recipes.AnyRevision)
	becomes("= a=1 b= b/c=2")
	f.set(c, "b/c", "3", recipes.AnyRevision)
	becomes("= a=1 b= b/c=3")
	f.must(c.Delete(f.ctx, "b/c", recipes.AnyRevision))
	becomes("= a=1 b=")
	f.set(c, "", "0", recipes.AnyRevision)
	becomes("=0 a=1 b=")
}

func configWatchEnds(f *fixture) {
	s := f.open()
	c := f.config(s, f.path("c"))
	ctx, cancel := context.WithCancel(f.ctx)
	one, err := c.Watch(ctx, "a")
	f.must(err)
	two := get(f, c.WatchTree)
	cancel()
	drained(f, one, "the cancelled channel")
	f.expire(s)
	drained(f, two, "the channel of an expired session")
	f.is(errOf(c.WatchTree(f.ctx)), recipes.ErrExpired)
	f.is(errOf(c.Set(f.ctx, "a", nil, recipes.AnyRevision)), recipes.ErrExpired)
}
