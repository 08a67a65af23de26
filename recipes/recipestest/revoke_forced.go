package recipestest

import (
	"context"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/zkrecipes/recipes"
)

func forcedTakes(f *fixture) {
	h := f.revocable(f.open(), 50*time.Millisecond)
	f.notAsked(h)
	s := f.open()
	w := f.sharedWaits(s, f.path("a"), recipes.Writing)
	began := time.Now()
	f.must(f.shared(s, f.path("a")).RevokeForced(f.ctx, h.Znode()))
	if waited := time.Since(began); waited < 50*time.Millisecond {
		f.Errorf("the hold ended after %v", waited)
	}
	f.lost(h, recipes.ErrRevoked, recipes.ErrRemoved)
	f.await(h.Revoked(), "the request")
	next := w.must(f)
	if next.Token() <= h.Token() {
		f.Errorf("token %d after %d", next.Token(), h.Token())
	}
	f.is(h.Release(f.ctx), recipes.ErrNotHeld)
	f.held(next)
}

func forcedConsent(f *fixture) {
	h := f.revocable(f.open(), time.Hour)
	l := f.shared(f.open(), f.path("a"))
	call := startErr(f, func() error { return l.RevokeForced(f.ctx, h.Znode()) })
	f.await(h.Revoked(), "the request")
	call.blocked(f)
	f.must(h.Release(f.ctx))
	call.must(f)
}

func forcedNotAllowed(f *fixture) {
	s := f.open()
	h := f.revocable(s, 0)
	f.is(f.shared(s, f.path("a")).RevokeForced(f.ctx, h.Znode()), recipes.ErrNotRevocable)
	if _, stat := f.read(h.Znode()); stat.Version != 0 {
		f.Error("the holder was asked")
	}
	f.held(h)
}

func forcedCancelled(f *fixture) {
	h := f.revocable(f.open(), 300*time.Millisecond)
	l := f.shared(f.open(), f.path("a"))
	ctx, cancel := context.WithCancel(f.ctx)
	defer cancel()
	call := startErr(f, func() error { return l.RevokeForced(ctx, h.Znode()) })
	f.await(h.Revoked(), "the request")
	cancel()
	f.is(call.failure(f), context.Canceled)
	time.Sleep(350 * time.Millisecond)
	f.must(h.Write(f.ctx))
	f.held(h)
}

// forcedStuck: a holder may be stuck or ignore the request. The guard refuses its writes.
func forcedStuck(f *fixture) {
	h := f.revocable(f.open(), time.Millisecond)
	f.must(f.shared(f.open(), f.path("a")).RevokeForced(f.ctx, h.Znode()))
	f.is(h.Write(f.ctx, recipes.Create(f.path("a", "late"), nil)), recipes.ErrNotHeld, recipes.ErrRemoved)
	f.is(h.Err(), recipes.ErrNotHeld)
	if f.exists(f.path("a", "late")) {
		f.Error("a late write was committed")
	}
}

func forcedTakenBack(f *fixture) {
	h := f.revocable(f.open(), 200*time.Millisecond)
	l := f.shared(f.open(), f.path("a"))
	call := startErr(f, func() error { return l.RevokeForced(f.ctx, h.Znode()) })
	f.await(h.Revoked(), "the request")
	_, err := f.outside.Set(h.Znode(), []byte("never mind"), -1)
	f.must(err)
	f.is(call.failure(f), recipes.ErrBadVersion)
	f.held(h)
	_, _, err = f.outside.Get(h.Znode())
	if err == zk.ErrNoNode {
		f.Error("the znode was deleted")
	}
}
