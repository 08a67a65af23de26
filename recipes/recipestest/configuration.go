package recipestest

import (
	"context"
	"fmt"
	"strings"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/recipes"
)

func configurationTests() []test {
	return []test{
		{"a bad key or revision is ErrInvalid, and nothing is sent", func(f *fixture) {
			s := f.open()
			for _, path := range []string{"", "a", "/"} {
				f.is(errOf(s.Configuration(path)), recipes.ErrInvalid)
			}
			c := f.config(s, f.path("c"))
			f.failIf(c.Path() != f.path("c"), "path %q", c.Path())
			f.sendsNothing(s, func() {
				for _, key := range []string{"/a", "a/", "a//b", "..", "_c_x", "a/_c_x", "a\x00", "\xff"} {
					f.is(errOf(c.Get(f.ctx, key)), recipes.ErrInvalid)
					f.is(errOf(c.Set(f.ctx, key, nil, recipes.AnyRevision)), recipes.ErrInvalid)
					f.is(c.Delete(f.ctx, key, recipes.AnyRevision), recipes.ErrInvalid)
					f.is(errOf(c.Watch(f.ctx, key)), recipes.ErrInvalid)
				}
				f.is(errOf(c.Set(f.ctx, "a", nil, -2)), recipes.ErrInvalid)
				f.is(c.Delete(f.ctx, "a", -2), recipes.ErrInvalid)
				f.is(c.Delete(f.ctx, "a", recipes.NoRevision), recipes.ErrInvalid)
				f.is(c.Delete(f.ctx, "", recipes.AnyRevision), recipes.ErrInvalid)
			})
		}},
		{"get/a key that does not exist is ErrNoNode", func(f *fixture) {
			c := f.config(f.open(), f.path("c"))
			for _, key := range []string{"", "a", "a/b"} {
				f.is(errOf(c.Get(f.ctx, key)), recipes.ErrNoNode)
			}
			f.is(errOf(c.Set(f.ctx, "a", nil, 5)), recipes.ErrNoNode)
			f.is(c.Delete(f.ctx, "a", recipes.AnyRevision), recipes.ErrNoNode)
			f.is(c.Delete(f.ctx, "a", 5), recipes.ErrNoNode)
			f.failIf(f.exists(f.path("c")), "a read created the configuration")
		}},
		{"delete/another revision is refused, and so is a key with children", func(f *fixture) {
			c := f.config(f.open(), f.path("c"))
			first := f.set(c, "a", "1", recipes.NoRevision)
			second := f.set(c, "a", "2", first)
			f.set(c, "a/b", "3", recipes.NoRevision)
			f.is(c.Delete(f.ctx, "a", first), recipes.ErrBadVersion)
			f.is(c.Delete(f.ctx, "a", second), recipes.ErrNotEmpty)
			f.must(c.Delete(f.ctx, "a/b", recipes.AnyRevision))
			f.must(c.Delete(f.ctx, "a", second))
			f.is(c.Delete(f.ctx, "a", second), recipes.ErrNoNode)
		}},
		{"snapshot/all keys are returned, sorted, and nothing else", func(f *fixture) {
			c := f.config(f.open(), f.path("c"))
			none := get(f, c.Snapshot)
			f.failIf(len(none) != 0, "%+v", none)
			f.set(c, "b/x", "2", recipes.NoRevision)
			revision := f.set(c, "a", "1", recipes.NoRevision)
			f.create(f.path("c", "c"), "by another client")
			entries := get(f, c.Snapshot)
			got, want := showEntries(entries), "= a=1 b= b/x=2 c=by another client"
			f.failIf(got != want, "snapshot %q; want %q", got, want)
			f.failIf(entries[1].Revision != revision, "revision %d; want %d", entries[1].Revision, revision)
		}},
		{"watch/values are reported, and None while the key does not exist", func(f *fixture) {
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
		}},
		{"watch/a slow reader gets the latest value", func(f *fixture) {
			c := f.config(f.open(), f.path("c"))
			entries := f.watchKey(f.config(f.open(), f.path("c")), "a")
			for i := range 8 {
				f.set(c, "a", fmt.Sprint(i), recipes.AnyRevision)
			}
			f.turns(entries, "7", false)
		}},
		{"watch/a change during a lost connection is not missed", func(f *fixture) {
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
		}},
		{"watch/a tree is reported whole after each change", func(f *fixture) {
			c := f.config(f.open(), f.path("c"))
			tree := get(f, f.config(f.open(), f.path("c")).WatchTree)
			first := receive(f, tree, "the tree")
			f.failIf(len(first) != 0, "%+v", first)
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
		}},
		{"watch/the channel is closed when the context ends or the session is lost", func(f *fixture) {
			s := f.open()
			c := f.config(s, f.path("c"))
			ctx, cancel := context.WithCancel(f.ctx)
			one := must.Get(c.Watch(ctx, "a"))(f)
			two := get(f, c.WatchTree)
			cancel()
			drained(f, one, "the cancelled channel")
			f.expire(s)
			drained(f, two, "the channel of an expired session")
			f.is(errOf(c.WatchTree(f.ctx)), recipes.ErrExpired)
			f.is(errOf(c.Set(f.ctx, "a", nil, recipes.AnyRevision)), recipes.ErrExpired)
		}},
	}
}

func (f *fixture) config(s recipes.Recipes, path string) recipes.Configuration {
	f.Helper()
	return must.Get(s.Configuration(path))(f)
}

func (f *fixture) set(c recipes.Configuration, key, value string, expected recipes.Revision) recipes.Revision {
	f.Helper()
	return must.Get(c.Set(f.ctx, key, []byte(value), expected))(f)
}

func (f *fixture) has(c recipes.Configuration, key, value string) recipes.Revision {
	f.Helper()
	e := must.Get(c.Get(f.ctx, key))(f)
	if e.Key != key || string(e.Value) != value || e.Revision <= 0 || e.Modified.IsZero() || e.None() {
		f.Errorf("%+v; want %q", e, value)
	}
	return e.Revision
}

func showEntries(entries []recipes.Entry) string {
	var all []string
	for _, e := range entries {
		all = append(all, e.Key+"="+string(e.Value))
	}
	return strings.Join(all, " ")
}

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
	return must.Get(c.Watch(f.ctx, key))(f)
}
