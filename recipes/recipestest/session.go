package recipestest

import (
	"slices"
	"time"

	"github.com/zkrecipes/zkrecipes/recipes"
)

func sessionTests() []test {
	return slices.Concat(openTests(), []test{
		{"it has an id, a timeout and the state connected", freshSession},
		{"the timeout is what the server grants", grantedTimeout},
		{"sessions are distinct", distinctSessions},
		{"lines are refused only for bad arguments, which sends nothing", badArguments},
		{"events/the first is the present state", firstEvent},
		{"events/suspension and recovery are told, the session stays", suspension},
		{"events/a slow reader never misses the loss", slowReader},
		{"events/the channel is closed when the context ends", eventsCancelled},
		{"events/after the loss there is the loss", eventsAfterLoss},
		{"stats/they count what is sent and received", countersCount},
		{"stats/reconnects", countersReconnects},
		{"chroot/it is created when something is created below it", chroot},
		{"auth/a digest opens what its ACL closes to others", digest},
	}, endTests())
}

func freshSession(f *fixture) {
	s := f.open()
	if s.ID() == 0 {
		f.Error("the id is 0")
	}
	if s.Timeout() <= 0 {
		f.Errorf("timeout %v", s.Timeout())
	}
	if s.State() != recipes.Connected || s.Err() != nil {
		f.Errorf("%v, %v; want connected", s.State(), s.Err())
	}
	select {
	case <-s.Done():
		f.Error("lost")
	default:
	}
}

func grantedTimeout(f *fixture) {
	if got := f.open(withTimeout(lifetime)).Timeout(); got != lifetime {
		f.Errorf("timeout %v; want %v", got, lifetime)
	}
	if got := f.open(withTimeout(time.Millisecond)).Timeout(); got <= time.Millisecond {
		f.Errorf("timeout %v; no server grants that", got)
	}
	const weeks = 3 * 7 * 24 * time.Hour
	if got := f.open(withTimeout(weeks)).Timeout(); got <= 0 || got >= weeks {
		f.Errorf("timeout %v; no server grants that", got)
	}
}

func distinctSessions(f *fixture) {
	a, b := f.open(), f.open()
	if a.ID() == b.ID() {
		f.Errorf("both are session %#x", a.ID())
	}
	f.must(a.Close(f.ctx))
	if b.State() != recipes.Connected {
		f.Errorf("closing one made the other %v", b.State())
	}
	f.acquire(b, f.path("a"))
}

func badArguments(f *fixture) {
	s := f.open()
	before := f.stats(s)
	for _, path := range []string{"", "a", "/a/", "//a", "/a//b", "/a/../b", "/.", "/a\x00b", "/\xff"} {
		_, err := s.Lock(path, recipes.LockConfig{})
		f.is(err, recipes.ErrInvalid)
		_, err = s.Election(path, recipes.ElectionConfig{})
		f.is(err, recipes.ErrInvalid)
	}
	_, err := s.Lock("/a", recipes.LockConfig{Strategy: "dance"})
	f.is(err, recipes.ErrInvalid)
	_, err = s.Election("/a", recipes.ElectionConfig{Strategy: "dance"})
	f.is(err, recipes.ErrInvalid)
	for _, strategy := range append(recipes.Strategies(), "") {
		_, err := s.Lock("/a", recipes.LockConfig{Strategy: strategy})
		f.must(err)
		_, err = s.Election("/a", recipes.ElectionConfig{Strategy: strategy})
		f.must(err)
	}
	if after := f.stats(s); after.Reads != before.Reads || after.Writes != before.Writes {
		f.Errorf("something was sent: %+v, before %+v", after, before)
	}
}

func countersCount(f *fixture) {
	s := f.open()
	f.create(f.path("a"), "")
	before := f.stats(s)
	h := f.acquire(s, f.path("a"))
	w := lockKind("").waits(f, s, f.path("a"))
	lockKind("").watches(f, s, f.path("a"))
	f.must(h.Release(f.ctx))
	f.must(w.value1(f).GiveBack(f.ctx))
	after := f.stats(s)
	if writes := after.Writes - before.Writes; writes != 4 {
		f.Errorf("%d writes; want two creations and two deletions", writes)
	}
	// Alone: a read of the parent. Waiting: the same, a listing, and a read with a
	// watch; woken: nothing. Looking on: a listing and two reads.
	if reads := after.Reads - before.Reads; reads != 7 {
		f.Errorf("%d reads; want 7", reads)
	}
	// One for the release, and one to the second holder for the end of its znode.
	if events := after.WatchEvents - before.WatchEvents; events != 2 {
		f.Errorf("%d watch events; want 2", events)
	}
	if after.RequestBytes <= before.RequestBytes || after.ResponseBytes <= before.ResponseBytes {
		f.Errorf("bytes went from %d and %d to %d and %d", before.RequestBytes, before.ResponseBytes, after.RequestBytes, after.ResponseBytes)
	}
	var byKind int64
	for kind, n := range after.ByKind {
		if kind == "" {
			f.Errorf("%d requests of a kind without a name", n)
		}
		byKind += n
	}
	if byKind < after.Reads+after.Writes+after.Pings {
		f.Errorf("%d requests by kind, fewer than %d reads, %d writes and %d pings", byKind, after.Reads, after.Writes, after.Pings)
	}
}

func countersReconnects(f *fixture) {
	s := f.open()
	if n := f.stats(s).Reconnects; n != 0 {
		f.Errorf("%d reconnects", n)
	}
	f.sever(s)
	f.reconnect(s)
	if n := f.stats(s).Reconnects; n != 1 {
		f.Errorf("%d reconnects; want 1", n)
	}
}

func chroot(f *fixture) {
	chroot := f.path("deep", "chroot")
	s := f.open(func(c *recipes.SessionConfig) { c.Chroot = chroot })
	if f.exists(f.root) {
		f.Error("opening the session created the chroot")
	}
	in, err := f.lock(s, "/a").Contenders(f.ctx)
	if err != nil || len(in) != 0 {
		f.Errorf("contenders %v, %v; want none", in, err)
	}
	h := f.acquire(s, "/a")
	if names := f.children(chroot + "/a"); len(names) != 1 || "/a/"+names[0] != h.Znode() {
		f.Errorf("%s has %v; the hold is %s", chroot, names, h.Znode())
	}
	in, err = f.lock(s, "/a").Contenders(f.ctx)
	f.must(err)
	if len(in) != 1 || in[0].Znode != h.Znode() {
		f.Errorf("contenders %+v; want %s", in, h.Znode())
	}
	// The same node, seen without a chroot.
	in, err = f.lock(f.open(), chroot+"/a").Contenders(f.ctx)
	f.must(err)
	if len(in) != 1 || in[0].Znode != chroot+h.Znode() || in[0].Token != h.Token() {
		f.Errorf("contenders %+v; want %s", in, chroot+h.Znode())
	}
	f.remove(chroot + h.Znode())
	f.lost(h, recipes.ErrRemoved)
	slashed := f.open(func(c *recipes.SessionConfig) { c.Chroot = "/" })
	f.acquire(slashed, f.path("b"))
}

func digest(f *fixture) {
	user := func(name, password string) recipes.Client {
		return f.open(func(c *recipes.SessionConfig) {
			c.Digest = &recipes.Digest{User: name, Password: password}
			c.ACL = []recipes.ACL{{Permissions: recipes.PermAll, Scheme: "auth"}}
		})
	}
	h := f.acquire(user("ann", "secret"), f.path("a"))
	for who, s := range map[string]recipes.Client{
		"nobody": f.open(), "another user": user("bob", "secret"), "another password": user("ann", "guess"),
	} {
		_, err := f.lock(s, f.path("a")).Acquire(f.ctx)
		f.is(err, recipes.ErrAccessDenied)
		_, err = f.lock(s, f.path("a")).Contenders(f.ctx)
		f.is(err, recipes.ErrAccessDenied)
		if err := s.Err(); err != nil {
			f.Errorf("%s: the session is lost: %v", who, err)
		}
	}
	again := user("ann", "secret")
	f.sever(again)
	f.reconnect(again) // credentials belong to the connection, and are given again
	w := lockKind("").waits(f, again, f.path("a"))
	f.must(h.Release(f.ctx))
	f.must(w.value1(f).GiveBack(f.ctx))
}
