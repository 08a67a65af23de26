package zookeeper_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

func configurationOperations() []operation {
	value := func(e recipes.Entry) string { return string(e.Value) }
	entries := func(all []recipes.Entry) string {
		out := fmt.Sprint(len(all))
		for _, e := range all {
			out += " " + e.Key + "=" + string(e.Value)
		}
		return out
	}
	setting := func(s *stage, in recipes.Client, key, value string, expected recipes.Revision) error {
		_, err := s.configuration(in).Set(s.ctx, key, []byte(value), expected)
		return err
	}
	some := func(s *stage) {
		for _, key := range []string{"a", "a/b", "c"} {
			s.ok(setting(s, s.other, key, key, recipes.AnyRevision))
		}
	}
	// set changes a key. The revision that it returns must be the current one.
	set := func(s *stage, key string, expected recipes.Revision) doing {
		var told recipes.Revision
		return doing{
			act: func(ctx context.Context) (err error) {
				told, err = s.configuration(s.victim).Set(ctx, key, []byte("mine"), expected)
				return err
			},
			happened: func() bool { return s.holds(stagePath+"/"+key, "mine") },
			end: func() error {
				e, err := s.configuration(s.other).Get(s.ctx, key)
				if e.Revision != told || string(e.Value) != "mine" {
					s.Errorf("Set returned revision %d, but the entry is %+v", told, e)
				}
				return err
			},
		}
	}
	// knows makes the victim's session know how many keys were deleted.
	knows := func(s *stage) {
		s.ok(setting(s, s.victim, "other", "", recipes.NoRevision))
		s.ok(s.configuration(s.victim).Delete(s.ctx, "other", recipes.AnyRevision))
	}
	// replace replaces the key "a" by one of the same version.
	replace := func(s *stage) error {
		return errors.Join(s.configuration(s.other).Delete(s.ctx, "a", recipes.AnyRevision), setting(s, s.other, "a", "theirs", recipes.NoRevision))
	}
	// setBeside sets the key "a" in a session that has created a key. Another client is faster.
	setBeside := func(name, created string) operation {
		return operation{"Configuration.Set, " + name, func(s *stage) doing {
			s.ok(setting(s, s.victim, created, "1", recipes.NoRevision))
			do := set(s, "a", recipes.AnyRevision)
			do.between = []meddling{{name: "another sets it", at: zktest.Op(zkserver.OpMulti), do: func() error { return setting(s, s.other, "a", "theirs", recipes.AnyRevision) }, then: func() {
				if !do.happened() {
					s.Error("the key was not set")
				}
			}}}
			return do
		}}
	}
	return []operation{
		{"Configuration.Get", func(s *stage) doing {
			some(s)
			return asking(func(ctx context.Context) (recipes.Entry, error) { return s.configuration(s.victim).Get(ctx, "a/b") }, value)
		}},
		{"Configuration.Snapshot", func(s *stage) doing {
			some(s)
			return asking(s.configuration(s.victim).Snapshot, entries)
		}},
		{"Configuration.Snapshot, of nothing", func(s *stage) doing { return asking(s.configuration(s.victim).Snapshot, entries) }},
		{"Configuration.Set, a new key", func(s *stage) doing {
			do := set(s, "a/b", recipes.NoRevision)
			do.refused = recipes.ErrNodeExists
			do.denied = []denial{{znode: stagePath, perms: noCreate}}
			return do
		}},
		{"Configuration.Set, a new key beside another", func(s *stage) doing {
			s.ok(setting(s, s.victim, "other", "", recipes.NoRevision))
			do := set(s, "a", recipes.NoRevision)
			do.refused = recipes.ErrNodeExists
			do.between = []meddling{{name: "another makes it", at: zktest.Op(zkserver.OpMulti), do: func() error { return setting(s, s.other, "a", "theirs", recipes.NoRevision) }, want: recipes.ErrNodeExists}}
			return do
		}},
		{"Configuration.Set, its own znode", func(s *stage) doing {
			do := set(s, "", recipes.NoRevision)
			do.happened = func() bool { return s.holds(stagePath, "mine") }
			do.refused = recipes.ErrNodeExists
			return do
		}},
		{"Configuration.Set, a key that was read", func(s *stage) doing {
			do := set(s, "a", must.Get(s.configuration(s.victim).Set(s.ctx, "a", []byte("1"), recipes.NoRevision))(s.T))
			do.refused = recipes.ErrBadVersion
			do.denied = []denial{{znode: stagePath + "/a", perms: noWrite}}
			do.between = []meddling{{name: "another sets it", at: zktest.Op(zkserver.OpMulti), do: func() error { return setting(s, s.other, "a", "theirs", recipes.AnyRevision) }, want: recipes.ErrBadVersion}}
			return do
		}},
		{"Configuration.Set, a key that was read, again", func(s *stage) doing {
			knows(s)
			do := set(s, "a", must.Get(s.configuration(s.other).Set(s.ctx, "a", []byte("1"), recipes.NoRevision))(s.T))
			do.refused = recipes.ErrBadVersion
			do.between = []meddling{
				{name: "another replaces it", at: zktest.Op(zkserver.OpMulti), do: func() error { return replace(s) }, want: recipes.ErrBadVersion},
				{name: "another deletes another key", at: zktest.Op(zkserver.OpMulti), do: func() error {
					return errors.Join(setting(s, s.other, "b", "", recipes.NoRevision), s.configuration(s.other).Delete(s.ctx, "b", recipes.AnyRevision))
				}, then: func() {
					if !do.happened() {
						s.Error("the key was not set")
					}
				}},
			}
			return do
		}},
		{"Configuration.Set, whatever there is", func(s *stage) doing { return set(s, "a/b", recipes.AnyRevision) }},
		setBeside("whatever there is, again", "a"),
		setBeside("whatever there is, beside another", "other"),
		{"Configuration.Delete", func(s *stage) doing {
			s.ok(setting(s, s.victim, "a", "1", recipes.NoRevision))
			mine := s.configuration(s.victim)
			return doing{
				act:      func(ctx context.Context) error { return mine.Delete(ctx, "a", recipes.AnyRevision) },
				happened: func() bool { return !s.present(stagePath + "/a") },
				refused:  recipes.ErrNoNode,
				denied:   []denial{{znode: stagePath, perms: noDelete}},
				between: []meddling{{name: "another deletes it", at: zktest.Op(zkserver.OpMulti), do: func() error {
					return s.configuration(s.other).Delete(s.ctx, "a", recipes.AnyRevision)
				}, want: recipes.ErrNoNode}},
			}
		}},
		{"Configuration.Delete, a key that was read", func(s *stage) doing {
			r := must.Get(s.configuration(s.other).Set(s.ctx, "a", []byte("1"), recipes.NoRevision))(s.T)
			return doing{
				act:      func(ctx context.Context) error { return s.configuration(s.victim).Delete(ctx, "a", r) },
				happened: func() bool { return !s.present(stagePath + "/a") },
				refused:  recipes.ErrNoNode,
			}
		}},
		{"Configuration.Delete, a key that was read, again", func(s *stage) doing {
			knows(s)
			r := must.Get(s.configuration(s.other).Set(s.ctx, "a", []byte("1"), recipes.NoRevision))(s.T)
			return doing{
				act:      func(ctx context.Context) error { return s.configuration(s.victim).Delete(ctx, "a", r) },
				happened: func() bool { return !s.present(stagePath + "/a") },
				refused:  recipes.ErrNoNode,
				between:  []meddling{{name: "another replaces it", at: zktest.Op(zkserver.OpMulti), do: func() error { return replace(s) }, want: recipes.ErrBadVersion}},
			}
		}},
		{"Configuration.Delete, a parent", func(s *stage) doing {
			s.ok(setting(s, s.other, "a/b", "1", recipes.NoRevision))
			s.ok(s.configuration(s.other).Delete(s.ctx, "a/b", recipes.AnyRevision)) // the count of this deletion is below a
			return doing{
				act: func(ctx context.Context) error {
					return s.configuration(s.victim).Delete(ctx, "a", recipes.AnyRevision)
				},
				happened: func() bool { return !s.present(stagePath + "/a") },
				refused:  recipes.ErrNoNode,
				between: []meddling{{name: "another creates a key below it", at: zktest.Op(zkserver.OpMulti), do: func() error {
					return setting(s, s.other, "a/c", "theirs", recipes.NoRevision)
				}, want: recipes.ErrNotEmpty}},
			}
		}},
		{"Grant.Write, a deletion of a key", func(s *stage) doing {
			s.ok(setting(s, s.other, "a", "1", recipes.NoRevision))
			h := must.Get(must.Get(s.victim.Lock("/lock-of-keys", recipes.LockConfig{}))(s.T).Acquire(s.ctx))(s.T)
			op := must.Get(s.configuration(s.victim).Key(recipes.Delete("a", recipes.AnyVersion)))(s.T)
			return doing{
				act:      func(ctx context.Context) error { return h.Write(ctx, op) },
				happened: func() bool { return !s.present(stagePath + "/a") },
				once:     true,
				single:   true,
				lost:     []error{recipes.ErrNotHeld},
				end:      func() error { return h.Release(s.ctx) },
			}
		}},
		{"Configuration.Watch, a new key", func(s *stage) doing {
			return doing{
				act: until(s, func(ctx context.Context) (<-chan recipes.Entry, error) {
					return s.configuration(s.victim).Watch(ctx, "a")
				}, value, "", "2"),
				happen: func() error { return setting(s, s.other, "a", "2", recipes.AnyRevision) },
			}
		}},
		{"Configuration.Watch, another value", func(s *stage) doing {
			s.ok(setting(s, s.other, "a", "1", recipes.AnyRevision))
			return doing{
				act: until(s, func(ctx context.Context) (<-chan recipes.Entry, error) {
					return s.configuration(s.victim).Watch(ctx, "a")
				}, value, "1", "2"),
				happen: func() error { return setting(s, s.other, "a", "2", recipes.AnyRevision) },
			}
		}},
		{"Configuration.WatchTree, a new one", func(s *stage) doing {
			return doing{
				act:    until(s, s.configuration(s.victim).WatchTree, entries, "0", "1 =", "2 = a=", "3 = a= a/b=2"),
				happen: func() error { return setting(s, s.other, "a/b", "2", recipes.AnyRevision) },
			}
		}},
		{"Configuration.WatchTree, many changes", func(s *stage) doing {
			s.ok(setting(s, s.other, "a/b", "1", recipes.AnyRevision))
			theirs := s.configuration(s.other)
			return doing{
				act: until(s, s.configuration(s.victim).WatchTree, entries, "3 = a= a/b=1", "4 = a= a/b=1 c=3", "4 = a= a/b=2 c=3", "3 = a= a/b=2"),
				happen: func() error {
					return errors.Join(setting(s, s.other, "a/b", "2", recipes.AnyRevision), setting(s, s.other, "c", "3", recipes.AnyRevision), theirs.Delete(s.ctx, "c", recipes.AnyRevision))
				},
			}
		}},
	}
}
