package recipestest

import (
	"time"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// revokeTests are what a revocable shared lock promises.
func revokeTests() []test {
	return []test{
		{"the holder is told, and consents by releasing", revokeConsent},
		{"nothing happens to a holder that does not consent", revokeIgnored},
		{"a request before anybody listens is not missed", revokeBefore},
		{"a request during a lost connection is not missed", revokeWhileSevered},
		{"a waiter learns of it when it is granted", revokeWaiter},
		{"data is kept, and the request is the text's word", revokeWord},
		{"an operator's bare unlock is a request", revokeByHand},
		{"a contender that is not revocable is left alone", revokeNotAllowed},
		{"a contender that has left is not an error", revokeGone},
		{"another znode is ErrInvalid", revokeInvalid},
		{"asking twice is asking once", revokeTwice},
		{"forced/the hold is lost when the grace is over, and writes are refused", forcedTakes},
		{"forced/it returns as soon as the holder has consented", forcedConsent},
		{"forced/without a grace it is refused, and nobody is asked", forcedNotAllowed},
		{"forced/a cancelled call takes nothing", forcedCancelled},
		{"forced/a holder that does not watch is refused by the guard", forcedStuck},
		{"forced/a request that was taken back no longer counts", forcedTakenBack},
	}
}

func allow(grace time.Duration) func(*recipes.SharedLockConfig) {
	return func(c *recipes.SharedLockConfig) { c.Revocable, c.Grace, c.Data = true, grace, []byte("me") }
}

func (f *fixture) revocable(s recipes.Recipes, grace time.Duration) recipes.SharedHold {
	f.Helper()
	h, err := f.shared(s, f.path("a"), allow(grace)).AcquireWrite(f.ctx)
	f.must(err)
	return h
}

func (f *fixture) notAsked(h recipes.SharedHold) {
	f.Helper()
	select {
	case <-h.Revoked():
		f.Errorf("%s was asked to give way", h.Znode())
	default:
	}
}

func revokeConsent(f *fixture) {
	h := f.revocable(f.open(), 0)
	f.notAsked(h)
	s := f.open()
	w := f.sharedWaits(s, f.path("a"), recipes.Writing)
	f.must(f.shared(s, f.path("a")).Revoke(f.ctx, h.Znode()))
	f.await(h.Revoked(), "the request")
	f.held(h)
	w.blocked(f)
	f.must(h.Release(f.ctx))
	w.value1(f)
}

func revokeIgnored(f *fixture) {
	h := f.revocable(f.open(), time.Millisecond)
	f.must(f.shared(f.open(), f.path("a")).Revoke(f.ctx, h.Znode()))
	f.await(h.Revoked(), "the request")
	time.Sleep(10 * time.Millisecond) // its grace means nothing to who only asks
	f.must(h.Write(f.ctx))
	f.held(h)
}

func revokeBefore(f *fixture) {
	h := f.revocable(f.open(), 0)
	f.must(f.shared(f.open(), f.path("a")).Revoke(f.ctx, h.Znode()))
	f.await(h.Revoked(), "the request")
}

func revokeWhileSevered(f *fixture) {
	s := f.open()
	h := f.revocable(s, 0)
	f.notAsked(h)
	f.sever(s)
	f.must(f.shared(f.open(), f.path("a")).Revoke(f.ctx, h.Znode()))
	f.reconnect(s)
	f.await(h.Revoked(), "the request")
}

func revokeWaiter(f *fixture) {
	s := f.open()
	h := f.writes(s, f.path("a"))
	joined := make(chan recipes.Place, 1)
	l := f.shared(f.open(), f.path("a"), allow(0), func(c *recipes.SharedLockConfig) { c.Joined = func(p recipes.Place) { joined <- p } })
	w := start(f, func() (recipes.SharedHold, error) { return l.AcquireRead(f.ctx) })
	place := receive(f, joined, "joining the line")
	f.must(f.shared(s, f.path("a")).Revoke(f.ctx, place.Znode))
	f.must(h.Release(f.ctx))
	f.await(w.value1(f).Revoked(), "the request")
}

func revokeWord(f *fixture) {
	s := f.open()
	h := f.revocable(s, 5*time.Second)
	l := f.shared(s, f.path("a"))
	f.must(l.Revoke(f.ctx, h.Znode()))
	if data, _ := f.read(h.Znode()); data != "unlock\nzkrecipes: revocable grace=5000ms\nme" {
		f.Errorf("the znode holds %q", data)
	}
	in, err := l.Contenders(f.ctx)
	f.must(err)
	if c := in[0]; !c.Revoked || string(c.Data) != "me" || c.Grace != 5*time.Second {
		f.Errorf("told as %+v", c)
	}
}

func revokeByHand(f *fixture) {
	s := f.open()
	h := f.revocable(s, 5*time.Second)
	f.notAsked(h)
	_, err := f.outside.Set(h.Znode(), []byte("unlock"), -1)
	f.must(err)
	f.await(h.Revoked(), "the request")
	f.held(h)
	// What was allowed cannot be read any more.
	f.is(f.shared(s, f.path("a")).RevokeForced(f.ctx, h.Znode()), recipes.ErrNotRevocable)
	f.must(h.Release(f.ctx))
}

func revokeNotAllowed(f *fixture) {
	s := f.open()
	l := f.shared(s, f.path("a"), func(c *recipes.SharedLockConfig) { c.Data = []byte("mine") })
	h, err := l.AcquireWrite(f.ctx)
	f.must(err)
	f.is(l.Revoke(f.ctx, h.Znode()), recipes.ErrNotRevocable)
	f.is(l.RevokeForced(f.ctx, h.Znode()), recipes.ErrNotRevocable)
	if data, stat := f.read(h.Znode()); data != "mine" || stat.Version != 0 {
		f.Errorf("the znode holds %q, version %d", data, stat.Version)
	}
	f.notAsked(h)
}

func revokeGone(f *fixture) {
	s := f.open()
	h := f.revocable(s, time.Second)
	f.must(h.Release(f.ctx))
	f.must(f.shared(s, f.path("a")).Revoke(f.ctx, h.Znode()))
	f.must(f.shared(s, f.path("a")).RevokeForced(f.ctx, h.Znode()))
	select {
	case <-h.Revoked():
		f.Error("a released hold was asked to give way")
	default:
	}
}

func revokeInvalid(f *fixture) {
	s := f.open()
	h := f.revocable(s, time.Second)
	for _, znode := range []string{"", f.path("a"), f.path("b", "x-read-0000000001"), h.Znode() + "x", f.path("a", "config"), h.Znode() + "/x"} {
		f.is(f.shared(s, f.path("a")).Revoke(f.ctx, znode), recipes.ErrInvalid)
		f.is(f.shared(s, f.path("a")).RevokeForced(f.ctx, znode), recipes.ErrInvalid)
	}
}

func revokeTwice(f *fixture) {
	s := f.open()
	h := f.revocable(s, 0)
	for range 3 {
		f.must(f.shared(s, f.path("a")).Revoke(f.ctx, h.Znode()))
	}
	if _, stat := f.read(h.Znode()); stat.Version != 1 {
		f.Errorf("written %d times", stat.Version)
	}
	f.await(h.Revoked(), "the request")
}
