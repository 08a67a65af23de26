package recipestest

import (
	"context"
	"fmt"
	"strings"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/recipes"
)

func configurationSetTests() []test {
	return []test{
		{"set/a value is read with the revision that Set returned, and outlives the session", func(f *fixture) {
			c := f.config(f.open(), f.path("c"))
			first := f.set(c, "host", "one", recipes.AnyRevision)
			got := f.has(f.config(f.open(), f.path("c")), "host", "one")
			f.failIf(got != first, "revision %d; Set returned %d", got, first)
			second := f.set(c, "host", "two", first)
			f.failIf(second <= first || f.has(c, "host", "two") != second, "revision %d after %d", second, first)
			f.set(c, "host", "", recipes.AnyRevision)
			f.has(c, "host", "")
			data, stat := f.read(f.path("c", "host"))
			f.failIf(data != "" || stat.EphemeralOwner != 0, "the znode has %q, %+v", data, stat)
		}},
		{"key/a guarded write changes a key only while the lock is held", func(f *fixture) {
			s := f.open(func(c *recipes.SessionConfig) { c.Chroot = f.root })
			c := f.config(s, "/c")
			key := func(op recipes.Op) recipes.Op {
				f.Helper()
				return must.Get(c.Key(op))(f)
			}
			h := lockKind.granted(f, s, "/lock")
			f.must(h.Write(f.ctx, recipes.Create("/c", nil), key(recipes.Create("db", nil)), key(recipes.Create("db/host", []byte("one")))))
			created := f.has(c, "db/host", "one")
			f.must(h.Write(f.ctx, key(recipes.Set("db/host", []byte("two"), 0)), key(recipes.Set("", []byte("all"), recipes.AnyVersion))))
			f.failIf(f.has(c, "db/host", "two") <= created, "the revision has not grown")
			f.has(c, "", "all")
			f.is(h.Write(f.ctx, key(recipes.Set("db/host", nil, 0))), recipes.ErrBadVersion)
			read := must.Get(c.Get(f.ctx, "db/host"))(f)
			for _, e := range append(must.Get(c.Snapshot(f.ctx))(f), receive(f, f.watchKey(c, "db/host"), "the key")) {
				f.failIf(e.Key == "db/host" && e.Version != 1, "%+v; want version 1", e)
			}
			f.must(h.Write(f.ctx, key(recipes.Delete("db/host", read.Version))))
			f.is(errOf(c.Get(f.ctx, "db/host")), recipes.ErrNoNode)
			f.must(h.Release(f.ctx))
			f.is(h.Write(f.ctx, key(recipes.Set("db", []byte("late"), recipes.AnyVersion))), recipes.ErrNotHeld)
			f.has(c, "db", "")
		}},
		{"key/a guarded write deletes a key, and its parent", func(f *fixture) {
			s := f.open()
			c := f.config(s, f.path("c"))
			f.set(c, "a/b", "1", f.set(c, "a/b", "0", recipes.NoRevision))
			h := lockKind.granted(f, s, f.path("lock"))
			key := func(op recipes.Op) recipes.Op {
				f.Helper()
				return must.Get(c.Key(op))(f)
			}
			f.is(h.Write(f.ctx, key(recipes.Delete("a/none", recipes.AnyVersion))), recipes.ErrNoNode)
			f.is(h.Write(f.ctx, key(recipes.Delete("none/b", recipes.AnyVersion))), recipes.ErrNoNode)
			f.is(h.Write(f.ctx, key(recipes.Delete("a/b", 0))), recipes.ErrBadVersion)
			f.is(h.Write(f.ctx, key(recipes.Delete("a", recipes.AnyVersion))), recipes.ErrNotEmpty)
			f.must(h.Write(f.ctx, key(recipes.Delete("a/b", 1)), key(recipes.Delete("a", recipes.AnyVersion))))
			f.must(h.Write(f.ctx, key(recipes.Create("a", nil)), key(recipes.Create("a/b", nil)), key(recipes.Delete("a/b", 0)), key(recipes.Delete("a", 0))))
			f.is(errOf(c.Get(f.ctx, "a")), recipes.ErrNoNode)
			f.must(h.Release(f.ctx))
			f.is(h.Write(f.ctx, key(recipes.Delete("none/b", recipes.AnyVersion))), recipes.ErrNotHeld)
		}},
		{"key/an invalid key is refused, and nothing is sent", func(f *fixture) {
			s := f.open()
			c := f.config(s, f.path("c"))
			f.sendsNothing(s, func() {
				for _, op := range []recipes.Op{
					recipes.Set("/host", nil, 0), recipes.Set("a/../b", nil, 0), recipes.Create("a//b", nil), recipes.Create("_c_a", nil),
					recipes.Delete("a/", 0), recipes.Set("a", nil, -2), {Path: "a"},
				} {
					f.is(errOf(c.Key(op)), recipes.ErrInvalid)
				}
			})
		}},
		{"set/a revision other than the expected one is refused", func(f *fixture) {
			c, other := f.config(f.open(), f.path("c")), f.config(f.open(), f.path("c"))
			first := f.set(c, "a", "1", recipes.NoRevision)
			_, err := other.Set(f.ctx, "a", []byte("x"), recipes.NoRevision)
			f.is(err, recipes.ErrNodeExists)
			f.isNot(err, recipes.ErrUnknownOutcome)
			second := f.set(other, "a", "2", first)
			_, err = c.Set(f.ctx, "a", []byte("3"), first)
			f.is(err, recipes.ErrBadVersion)
			f.isNot(err, recipes.ErrUnknownOutcome)
			f.has(c, "a", "2")
			f.set(c, "a", "3", second)
		}},
		{"set/one of many that expect the same revision succeeds", func(f *fixture) {
			first := f.set(f.config(f.open(), f.path("c")), "a", "0", recipes.NoRevision)
			var all []*pending[recipes.Revision]
			for i := range 6 {
				c := f.config(f.open(), f.path("c"))
				all = append(all, start(f, func() (recipes.Revision, error) {
					return c.Set(f.ctx, "a", []byte(fmt.Sprint(i)), first)
				}))
			}
			won := 0
			for _, p := range all {
				if _, err := p.result(f); err == nil {
					won++
				} else {
					f.is(err, recipes.ErrBadVersion)
				}
			}
			f.failIf(won != 1, "%d succeeded", won)
		}},
		{"set/missing parents are created, and other parents keep their values", func(f *fixture) {
			c := f.config(f.open(), f.path("c"))
			f.set(c, "a/b/c", "deep", recipes.NoRevision)
			f.has(c, "a/b", "")
			f.set(c, "a", "value", recipes.AnyRevision)
			f.must(c.Delete(f.ctx, "a/b/c", recipes.AnyRevision))
			f.must(c.Delete(f.ctx, "a/b", recipes.AnyRevision))
			f.has(c, "a", "value")
		}},
		{"delete/the parents of deleted keys have no keys below them", func(f *fixture) {
			c := f.config(f.open(), f.path("c"))
			for range 2 {
				f.must(c.Delete(f.ctx, "a/b/c", f.set(c, "a/b/c", "1", f.set(c, "a/b/c", "0", recipes.NoRevision))))
				f.is(c.Delete(f.ctx, "a", recipes.AnyRevision), recipes.ErrNotEmpty)
				f.must(c.Delete(f.ctx, "a/b", recipes.AnyRevision))
				f.must(c.Delete(f.ctx, "a", must.Get(c.Get(f.ctx, "a"))(f).Revision))
			}
			entries := get(f, c.Snapshot)
			f.failIf(len(entries) != 1 || entries[0].Key != "", "%+v", entries)
		}},
		{"set/the empty key is the znode of the configuration", func(f *fixture) {
			c := f.config(f.open(), f.path("deep", "c"))
			first := f.set(c, "", "root", recipes.NoRevision)
			got := f.has(c, "", "root")
			f.failIf(got != first, "revision %d; Set returned %d", got, first)
			f.is(errOf(c.Set(f.ctx, "", nil, recipes.NoRevision)), recipes.ErrNodeExists)
			f.set(c, "", "more", first)
			f.set(c, "a", "1", recipes.NoRevision)
			f.must(c.Delete(f.ctx, "a", recipes.AnyRevision))
			f.has(c, "", "more")
		}},
		{"set/an empty value sets a key, and parents that Set creates are unset", func(f *fixture) {
			c := f.config(f.open(), f.path("c"))
			f.set(c, "empty/parent/key", "", recipes.NoRevision)
			f.set(c, "parent/key", "1", recipes.NoRevision)
			f.must(c.Delete(f.ctx, "parent/key", recipes.AnyRevision)) // does not delete the parent
			f.set(c, "empty", "", recipes.AnyRevision)
			want := map[string]bool{"": true, "parent": true, "empty/parent": true, "empty": false, "empty/parent/key": false}
			entries := get(f, c.Snapshot)
			f.failIf(len(entries) != len(want), "%+v", entries)
			for _, e := range entries {
				one := must.Get(c.Get(f.ctx, e.Key))(f)
				if e.Unset != want[e.Key] || one.Unset != e.Unset {
					f.Errorf("key %q: unset %t in the snapshot, %t alone", e.Key, e.Unset, one.Unset)
				}
			}
			f.set(c, "", "", recipes.AnyRevision)
			e, err := c.Get(f.ctx, "")
			f.failIf(err != nil || e.Unset, "the znode of the configuration is unset after Set: %+v, %v", e, err)
			c = f.config(f.open(), f.path("new"))
			f.set(c, "", "", recipes.NoRevision)
			e, err = c.Get(f.ctx, "")
			f.failIf(err != nil || e.Unset, "the znode of a new configuration is unset after Set: %+v, %v", e, err)
		}},
		{"set/a value that is too large is ErrTooLarge, and is not sent", func(f *fixture) {
			s := f.open(func(c *recipes.SessionConfig) { c.MaxPacket = 16 << 10 })
			c := f.config(s, f.path("c"))
			f.sendsNothing(s, func() {
				_, err := c.Set(f.ctx, "a", make([]byte, 16<<10), recipes.AnyRevision)
				f.is(err, recipes.ErrTooLarge)
				f.isNot(err, recipes.ErrUnknownOutcome)
				f.failIf(!strings.Contains(err.Error(), "16384"), "%v does not name the size", err)
			})
			f.set(c, "a", strings.Repeat("x", 12<<10), recipes.AnyRevision)
		}},
		{"set/a call waits for the connection", func(f *fixture) {
			s := f.open()
			c := f.config(s, f.path("c"))
			first := f.set(c, "a", "1", recipes.NoRevision)
			suspended(f, s, func() (recipes.Revision, error) { return c.Set(f.ctx, "a", []byte("2"), first) })
			f.has(c, "a", "2")
		}},
		{"set/a context that has ended changes nothing", func(f *fixture) {
			c := f.config(f.open(), f.path("c"))
			f.is(errOf(c.Set(f.ended(), "a", nil, recipes.AnyRevision)), context.Canceled)
			f.is(c.Delete(f.ended(), "a", recipes.AnyRevision), context.Canceled)
			f.is(errOf(c.Get(f.ended(), "a")), context.Canceled)
			f.failIf(f.exists(f.path("c")), "a znode was created")
		}},
		// ZooKeeper counts the versions of the new znode from 0 again. Revisions must not repeat.
		{"set/a key that is deleted and set again has another revision", func(f *fixture) {
			c := f.config(f.open(), f.path("c"))
			first := f.set(c, "a", "1", recipes.NoRevision)
			f.must(c.Delete(f.ctx, "a", first))
			second := f.set(c, "a", "1", recipes.NoRevision)
			f.is(errOf(c.Set(f.ctx, "a", []byte("x"), first)), recipes.ErrBadVersion)
			f.is(c.Delete(f.ctx, "a", first), recipes.ErrBadVersion)
			f.set(c, "a", "2", second)
		}},
	}
}
