package recipestest

import (
	"bytes"
	"regexp"
	"slices"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// placeTests tests recipes whose waiters keep their znodes when they are granted.
func placeTests() []kindTest {
	return []kindTest{
		{"the first contender is granted, and its znode is as documented", func(f *fixture, k kind) {
			s := f.open()
			g := get(f, k.with(f, s, f.path("a"), options{Data: []byte("who I am")}).Enter)
			f.held(g)
			name := strings.TrimPrefix(g.Znode(), f.path("a")+"/")
			want, header := `^_c_`+guid+`-`+k.way.Marker+`[0-9]{10}$`, `^`
			if k.hands(f) {
				want, header = `^`+k.way.Marker+`[0-9]{10}$`, `^_p_`+guid+`-`
			}
			f.failIf(!regexp.MustCompile(want).MatchString(name), "znode %s; want a name like %s", g.Znode(), want)
			data, stat := f.read(g.Znode())
			f.failIf(!regexp.MustCompile(header+`who I am$`).MatchString(data), "data %q", data)
			f.failIf(stat.EphemeralOwner != s.ID(), "owner %#x; want the session %#x", stat.EphemeralOwner, s.ID())
			if g.Token() <= 0 || int64(g.Token()) != stat.Czxid {
				f.Errorf("token %d; want the czxid, %d", g.Token(), stat.Czxid)
			}
			f.must(g.Release(f.ctx))
			f.failIf(f.exists(g.Znode()), "the znode exists after the release")
		}},
		{"Joined is called once with the place, before the call returns", joinedReportsThePlace},
		{"a lost connection keeps the place in the wait queue", waiterReconnects},
		{"contenders are returned in order", contendersInOrder},
		{"a release wakes as many waiters, and costs as many requests, as the strategy says", releaseCost},
	}
}

// lineTests tests every recipe that grants its path to one contender at a time.
func lineTests() []kindTest {
	return slices.Concat([]kindTest{
		// The test waits until the server has deleted the containers.
		{"missing parents are created as containers, which the server deletes when they are empty", func(f *fixture, k kind) {
			f.needs35("containers")
			s := f.open()
			g := k.granted(f, s, f.path("a", "b"))
			f.must(g.Write(f.ctx))
			f.must(g.Release(f.ctx))
			f.awaitNode(f.root, false) // deleted last, after the containers below it
			k.granted(f, s, f.path("a", "b"))
		}},
		{"a path that was deleted is created again", func(f *fixture, k kind) {
			s := f.open()
			f.must(k.granted(f, s, f.path("a")).Release(f.ctx))
			if err := f.outside.Delete(f.path("a"), -1); err != nil && err != zk.ErrNoNode {
				f.Fatal(err) // ErrNoNode is accepted: the server may have deleted the container
			}
			f.must(k.granted(f, s, f.path("a")).Release(f.ctx))
		}},
		{"the root of a chroot can be the path", func(f *fixture, k kind) {
			s := f.open(func(c *recipes.SessionConfig) { c.Chroot = f.root })
			g := k.granted(f, s, "/")
			f.failIf(strings.Count(g.Znode(), "/") != 1, "znode %q; want a child of /", g.Znode())
			w := k.waits(f, s, "/")
			f.must(g.Release(f.ctx))
			f.must(w.must(f).Release(f.ctx))
		}},
		{"data that does not fit into a packet is ErrTooLarge, and is not sent", func(f *fixture, k kind) {
			s := f.open(func(c *recipes.SessionConfig) { c.MaxPacket = 8 << 10 })
			f.writesNothing(s, func() {
				l := k.with(f, s, f.path("a"), options{Data: bytes.Repeat([]byte("x"), 9<<10)})
				f.is(errOf(l.Enter(f.ctx)), recipes.ErrTooLarge)
			})
			k.granted(f, s, f.path("a"))
		}},
		{"a refusal by the server is ErrAccessDenied", func(f *fixture, k kind) {
			f.create(f.path("a"), "")
			f.acl(f.path("a"), zk.PermRead)
			s := f.open()
			f.is(errOf(k.at(f, s, f.path("a")).Enter(f.ctx)), recipes.ErrAccessDenied)
			f.is(errOf(k.at(f, s, f.path("a", "below")).Enter(f.ctx)), recipes.ErrAccessDenied)
			f.empty(f.path("a"))
		}},
	}, lineOrderTests(), waitTests(), lossTests(), releaseTests())
}

var guid = `[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`
