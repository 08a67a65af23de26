package recipestest

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/recipes"
)

func groupTests() []test {
	return []test{
		{"a bad path or name is ErrInvalid, and nothing is sent", func(f *fixture) {
			s := f.open()
			f.sendsNothing(s, func() {
				f.is(errOf(s.Group("a", recipes.GroupConfig{})), recipes.ErrInvalid)
				for _, name := range []string{"a/b", "..", "_c_x", "a\x00"} {
					f.is(errOf(s.Group("/a", recipes.GroupConfig{Name: name})), recipes.ErrInvalid)
				}
				g := f.group(s, "/a", "b")
				f.failIf(g.Path() != "/a", "path %q", g.Path())
			})
		}},
		{"join/members are ephemeral children of the path", func(f *fixture) {
			m := f.join(f.open(), f.path("g"), "", "x")
			names := f.children(f.path("g"))
			if len(names) != 1 || f.path("g", names[0]) != m.Znode() || !strings.HasPrefix(names[0], "_c_") ||
				!strings.HasSuffix(names[0], "-member-0000000000") {
				f.Errorf("children %v of the group of %s", names, m.Znode())
			}
			data, stat := f.read(m.Znode())
			if data != "x" || stat.EphemeralOwner == 0 || recipes.Token(stat.Czxid) != m.Token() {
				f.Errorf("%s has data %q and %+v", m.Znode(), data, stat)
			}
		}},
		{"members/a group that does not exist is empty", func(f *fixture) {
			s := f.open()
			f.members(s, f.path("nowhere"), "")
			f.create(f.path("empty"), "")
			f.members(s, f.path("empty"), "")
			f.failIf(f.exists(f.path("nowhere")), "Members created the group")
		}},
		{"members/other children are ignored", func(f *fixture) {
			s := f.open()
			f.create(f.path("g", "note"), "not a member")
			if f.since35() {
				must.Get(f.outside.CreateContainer(f.path("g", "sub"), nil, zk.FlagContainer, zk.WorldACL(zk.PermAll)))(f)
			}
			f.members(s, f.path("g"), "")
			f.join(s, f.path("g"), "", "x")
			f.theirs(f.path("g", "theirs"), "curator's", zk.FlagEphemeral)
			f.members(s, f.path("g"), "x curator's")
		}},
		{"watch/it reports joins, updates and departures", func(f *fixture) {
			snapshots := f.watchGroup(f.open(), f.path("g"))
			first := receive(f, snapshots, "the first")
			f.failIf(len(first) != 0, "%+v at first", first)
			s := f.open()
			one := f.join(s, f.path("g"), "", "one")
			f.shows(snapshots, "one")
			two := f.join(f.open(), f.path("g"), "", "two")
			f.shows(snapshots, "one two")
			f.must(one.Update(f.ctx, []byte("eins")))
			f.shows(snapshots, "eins two")
			f.must(two.Leave(f.ctx))
			f.shows(snapshots, "eins")
			f.must(s.Close(f.ctx))
			f.shows(snapshots, "")
		}},
		{"watch/a slow reader gets the latest members", func(f *fixture) {
			s := f.open()
			snapshots := f.watchGroup(f.open(), f.path("g"))
			m := f.join(s, f.path("g"), "", "0")
			for range 5 {
				f.must(f.join(s, f.path("g"), "", "x").Leave(f.ctx))
			}
			f.must(m.Update(f.ctx, []byte("last")))
			f.shows(snapshots, "last")
		}},
		{"watch/a change during a lost connection is not missed", func(f *fixture) {
			s := f.open()
			one := f.join(f.open(), f.path("g"), "", "one")
			snapshots := f.watchGroup(s, f.path("g"))
			f.shows(snapshots, "one")
			f.sever(s)
			f.join(f.open(), f.path("g"), "", "two")
			f.must(one.Update(f.ctx, []byte("eins")))
			f.reconnect(s)
			f.shows(snapshots, "eins two")
		}},
		{"watch/a watch continues when the path is created and deleted", func(f *fixture) {
			snapshots := f.watchGroup(f.open(), f.path("g"))
			receive(f, snapshots, "the first")
			s := f.open()
			for _, data := range []string{"one", "two"} {
				m := f.join(s, f.path("g"), "", data)
				f.shows(snapshots, data)
				f.must(m.Leave(f.ctx))
				f.shows(snapshots, "")
				// The server may already have deleted the empty container.
				if err := f.outside.Delete(f.path("g"), -1); err != nil && !errors.Is(err, zk.ErrNoNode) {
					f.Fatal(err)
				}
			}
		}},
		{"watch/a member that cannot be read is Unreadable, and the watch goes on", func(f *fixture) {
			small := f.open(func(c *recipes.SessionConfig) { c.MaxPacket = 8 << 10 })
			one := f.join(f.open(), f.path("g"), "", "one")
			large := f.join(f.open(), f.path("g"), "", strings.Repeat("x", 9<<10))
			secret := f.join(f.open(), f.path("g"), "", "secret")
			f.acl(secret.Znode(), zk.PermAll&^zk.PermRead)
			check := func(members []recipes.Member) {
				f.Helper()
				for _, m := range members {
					f.failIf(m.Unreadable == (m.Znode == one.Znode() || string(m.Data) == "two") || m.Unreadable && m.Data != nil || m.Name == "", "%+v", m)
				}
			}
			all := get(f, f.group(small, f.path("g"), "").Members)
			f.failIf(len(all) != 3, "%+v", all)
			check(all)
			snapshots := f.watchGroup(small, f.path("g"))
			until := func(n int) {
				f.Helper()
				for {
					members := receive(f, snapshots, fmt.Sprint(n, " members"))
					if check(members); len(members) == n {
						return
					}
				}
			}
			until(3)
			f.join(f.open(), f.path("g"), "", "two")
			until(4)
			f.sever(small)
			f.reconnect(small)
			f.must(secret.Leave(f.ctx))
			until(3)
			f.must(large.Leave(f.ctx))
			until(2)
		}},
		{"watch/an Unreadable member that can be read again is read with the next change", func(f *fixture) {
			secret := f.join(f.open(), f.path("g"), "", "secret")
			f.acl(secret.Znode(), zk.PermAll&^zk.PermRead)
			snapshots := f.watchGroup(f.open(), f.path("g"))
			f.shows(snapshots, "")
			f.acl(secret.Znode(), zk.PermAll)
			f.join(f.open(), f.path("g"), "", "two")
			f.shows(snapshots, "secret two")
		}},
		{"watch/the channel is closed when the context ends or the session is lost, and Watch returns the error of its first read", func(f *fixture) {
			s := f.open()
			ctx, cancel := context.WithCancel(f.ctx)
			g := f.group(s, f.path("g"), "")
			one := must.Get(g.Watch(ctx))(f)
			two := f.watchGroup(s, f.path("g"))
			three := f.watchGroup(f.open(), f.path("g"))
			cancel()
			drained(f, one, "the cancelled channel")
			f.expire(s)
			drained(f, two, "the channel of an expired session")
			receive(f, three, "the other session's")
			f.is(errOf(g.Watch(f.ctx)), recipes.ErrExpired)
		}},
	}
}

func (f *fixture) group(s recipes.Recipes, path, name string) recipes.Group {
	f.Helper()
	return must.Get(s.Group(path, recipes.GroupConfig{Name: name}))(f)
}

func (f *fixture) join(s recipes.Recipes, path, name, data string) recipes.Membership {
	f.Helper()
	return must.Get(f.group(s, path, name).Join(f.ctx, []byte(data)))(f)
}

// showMembers returns the data of members, in order.
func showMembers(members []recipes.Member) string {
	var data []string
	for _, m := range members {
		data = append(data, string(m.Data))
	}
	return strings.Join(data, " ")
}

func (f *fixture) members(s recipes.Recipes, path, want string) []recipes.Member {
	f.Helper()
	members := get(f, f.group(s, path, "").Members)
	got := showMembers(members)
	f.failIf(got != want, "members %q; want %q", got, want)
	return members
}

// shows receives snapshots until one equals want. Others may come first: the members of a
// snapshot are read one after the other.
func (f *fixture) shows(snapshots <-chan []recipes.Member, want string) []recipes.Member {
	f.Helper()
	for {
		members := receive(f, snapshots, "the group "+want)
		if showMembers(members) == want {
			return members
		}
	}
}

func (f *fixture) watchGroup(s recipes.Recipes, path string) <-chan []recipes.Member {
	f.Helper()
	return get(f, f.group(s, path, "").Watch)
}
