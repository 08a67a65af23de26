package recipestest

import (
	"slices"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/recipes"
)

func sessionTests() []test {
	return slices.Concat(openTests(), []test{
		{"a new session has an id and a timeout, and is connected", func(f *fixture) {
			s := f.open()
			f.failIf(s.ID() == 0, "the id is 0")
			f.failIf(s.Timeout() <= 0, "timeout %v", s.Timeout())
			f.failIf(s.State() != recipes.Connected || s.Err() != nil, "%v, %v; want connected", s.State(), s.Err())
			select {
			case <-s.Done():
				f.Error("lost")
			default:
			}
		}},
		{"the timeout is the one that the server grants", func(f *fixture) {
			got := f.open(withTimeout(lifetime)).Timeout()
			f.failIf(got != lifetime, "timeout %v; want %v", got, lifetime)
			if got := f.open(withTimeout(time.Millisecond)).Timeout(); got <= time.Millisecond {
				f.Errorf("timeout %v; no server grants that", got)
			}
			const weeks = 3 * 7 * 24 * time.Hour
			if got := f.open(withTimeout(weeks)).Timeout(); got <= 0 || got >= weeks {
				f.Errorf("timeout %v; no server grants that", got)
			}
		}},
		{"opening a recipe sends nothing, and refuses only bad arguments", func(f *fixture) {
			s := f.open()
			f.sendsNothing(s, func() {
				for _, path := range []string{"", "a", "/a/", "//a", "/a//b", "/a/../b", "/.", "/a\x00b", "/\xff"} {
					f.is(errOf(s.Lock(path, recipes.LockConfig{})), recipes.ErrInvalid)
					f.is(errOf(s.Election(path, recipes.ElectionConfig{})), recipes.ErrInvalid)
				}
				f.is(errOf(s.Lock("/a", recipes.LockConfig{Strategy: "dance"})), recipes.ErrInvalid)
				f.is(errOf(s.Election("/a", recipes.ElectionConfig{Strategy: "dance"})), recipes.ErrInvalid)
				for _, strategy := range append(recipes.Strategies(), "") {
					must.Get(s.Lock("/a", recipes.LockConfig{Strategy: strategy}))(f)
					must.Get(s.Election("/a", recipes.ElectionConfig{Strategy: strategy}))(f)
				}
			})
		}},
		{"stats/requests, replies and events are counted", func(f *fixture) {
			f.needs35("create2, without which there is no handoff to count")
			s := f.open()
			f.create(f.path("a"), "")
			before := f.stats(s)
			h := f.acquire(s, f.path("a"))
			w := lockKind.waits(f, s, f.path("a"))
			lockKind.watches(f, s, f.path("a"))
			f.must(h.Release(f.ctx))
			f.must(w.must(f).Release(f.ctx))
			after := f.stats(s)
			writes := after.Writes - before.Writes
			f.failIf(writes != 4, "%d writes; want two creations and two deletions", writes)
			// The waiter lists, and reads with a watch; it reads nothing when it wakes. Contenders
			// lists once and reads twice. Reads by exists are not counted here, because their
			// number depends on the time. The holder and the waiter read the parent, and after a
			// second of holding the session reads it again.
			reads := after.Reads - before.Reads - (after.ByKind["exists"] - before.ByKind["exists"])
			f.failIf(reads != 5, "%d reads; want 5", reads)
			// One event is for the first release, the other for the deletion of the second holder's znode.
			events := after.WatchEvents - before.WatchEvents
			f.failIf(events != 2, "%d watch events; want 2", events)
			if after.RequestBytes <= before.RequestBytes || after.ResponseBytes <= before.ResponseBytes {
				f.Errorf("the bytes changed from %d and %d to %d and %d", before.RequestBytes, before.ResponseBytes, after.RequestBytes, after.ResponseBytes)
			}
			var byKind int64
			for kind, n := range after.ByKind {
				f.failIf(kind == "", "%d requests of an unnamed kind", n)
				byKind += n
			}
			if byKind < after.Reads+after.Writes+after.Pings {
				f.Errorf("%d requests by kind, fewer than %d reads, %d writes and %d pings", byKind, after.Reads, after.Writes, after.Pings)
			}
		}},
		{"stats/reconnects are counted", func(f *fixture) {
			s := f.open()
			n := f.stats(s).Reconnects
			f.failIf(n != 0, "%d reconnects", n)
			f.sever(s)
			f.reconnect(s)
			if n := f.stats(s).Reconnects; n != 1 {
				f.Errorf("%d reconnects; want 1", n)
			}
		}},
		{"chroot/the chroot is created with the first znode below it", chroot},
		{"auth/a digest gives access that the ACL denies to others", func(f *fixture) {
			user := func(name, password string) recipes.Client {
				return f.open(func(c *recipes.SessionConfig) {
					c.Digest = &recipes.Digest{User: name, Password: password}
					c.ACL = []recipes.ACL{{Permissions: recipes.PermAll, Scheme: "auth"}}
				})
			}
			h := f.acquire(user("ann", "secret"), f.path("a"))
			for who, s := range map[string]recipes.Client{
				"no user": f.open(), "another user": user("bob", "secret"), "another password": user("ann", "guess"),
			} {
				f.is(errOf(f.lock(s, f.path("a")).Acquire(f.ctx)), recipes.ErrAccessDenied)
				_, err := f.lock(s, f.path("a")).Contenders(f.ctx)
				f.is(err, recipes.ErrAccessDenied)
				if err := s.Err(); err != nil {
					f.Errorf("%s: the session is lost: %v", who, err)
				}
			}
			again := user("ann", "secret")
			f.sever(again)
			f.reconnect(again) // the session must send its credentials on each connection
			w := lockKind.waits(f, again, f.path("a"))
			f.must(h.Release(f.ctx))
			f.must(w.must(f).Release(f.ctx))
		}},
	}, endTests(), eventTests())
}

func chroot(f *fixture) {
	chroot := f.path("deep", "chroot")
	s := f.open(func(c *recipes.SessionConfig) { c.Chroot = chroot })
	f.failIf(f.exists(f.root), "opening the session created the chroot")
	in, err := f.lock(s, "/a").Contenders(f.ctx)
	f.failIf(err != nil || len(in) != 0, "contenders %v, %v; want none", in, err)
	h := f.acquire(s, "/a")
	names := f.children(chroot + "/a")
	f.failIf(len(names) != 1 || "/a/"+names[0] != h.Znode(), "%s has %v; the hold is %s", chroot, names, h.Znode())
	in = get(f, f.lock(s, "/a").Contenders)
	f.failIf(len(in) != 1 || in[0].Znode != h.Znode(), "contenders %+v; want %s", in, h.Znode())
	// The same znode, from a session without a chroot.
	in = get(f, f.lock(f.open(), chroot+"/a").Contenders)
	if len(in) != 1 || in[0].Znode != chroot+h.Znode() || in[0].Token != h.Token() {
		f.Errorf("contenders %+v; want %s", in, chroot+h.Znode())
	}
	f.remove(chroot + h.Znode())
	f.lost(h, recipes.ErrRemoved)
	slashed := f.open(func(c *recipes.SessionConfig) { c.Chroot = "/" })
	f.acquire(slashed, f.path("b"))
}
