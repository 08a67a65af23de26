package recipestest

import (
	"context"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// revokeTests tests what a revocable shared lock promises.
func revokeTests() []test {
	return []test{
		{"Revoke asks the holder, which consents by a release", func(f *fixture) {
			h := f.revocable(f.open(), 0)
			f.notAsked(h)
			s := f.open()
			w := f.sharedWaits(s, f.path("a"), recipes.Writing)
			f.must(f.shared(s, f.path("a")).Revoke(f.ctx, h.Znode()))
			f.await(h.Revoked(), "the request")
			f.held(h)
			w.blocked(f)
			f.must(h.Release(f.ctx))
			w.must(f)
		}},
		{"a request before the first call of Revoked is not missed, and a holder that does not consent keeps its hold", func(f *fixture) {
			h := f.revocable(f.open(), time.Millisecond)
			f.must(f.shared(f.open(), f.path("a")).Revoke(f.ctx, h.Znode()))
			f.await(h.Revoked(), "the request")
			time.Sleep(10 * time.Millisecond) // the grace only applies to RevokeForced
			f.must(h.Write(f.ctx))
			f.held(h)
		}},
		{"a request during a lost connection is not missed", func(f *fixture) {
			s := f.open()
			h := f.revocable(s, 0)
			f.notAsked(h)
			f.sever(s)
			f.must(f.shared(f.open(), f.path("a")).Revoke(f.ctx, h.Znode()))
			f.reconnect(s)
			f.await(h.Revoked(), "the request")
		}},
		{"a waiter sees the request when it is granted", func(f *fixture) {
			s := f.open()
			h := f.writes(s, f.path("a"))
			w := f.sharedWaits(f.open(), f.path("a"), recipes.Reading, allow(0))
			f.must(f.shared(s, f.path("a")).Revoke(f.ctx, w.place.Znode))
			f.must(h.Release(f.ctx))
			f.await(w.must(f).Revoked(), "the request")
		}},
		{"the holder's data is kept, the request is the source text's word unlock, and a second one changes nothing", func(f *fixture) {
			s := f.open()
			h := f.revocable(s, 5*time.Second)
			l := f.shared(s, f.path("a"))
			for range 3 {
				f.must(l.Revoke(f.ctx, h.Znode()))
			}
			data, stat := f.read(h.Znode())
			f.failIf(data != "unlock\nzkrecipes: revocable grace=5000ms\nme", "the znode has data %q", data)
			f.failIf(stat.Version != 1, "written %d times", stat.Version)
			in := get(f, l.Contenders)
			c := in[0]
			f.failIf(!c.Revoked || string(c.Data) != "me" || c.Grace != 5*time.Second, "listed as %+v", c)
		}},
		{"the data unlock, written by an operator, is a request", func(f *fixture) {
			s := f.open()
			h := f.revocable(s, 5*time.Second)
			f.notAsked(h)
			must.Get(f.outside.Set(h.Znode(), []byte("unlock"), -1))(f)
			f.await(h.Revoked(), "the request")
			f.held(h)
			// The new data does not say that the holder is revocable.
			f.is(f.shared(s, f.path("a")).RevokeForced(f.ctx, h.Znode()), recipes.ErrNotRevocable)
			f.must(h.Release(f.ctx))
		}},
		{"a contender that is not revocable is ErrNotRevocable", func(f *fixture) {
			s := f.open()
			l := f.shared(s, f.path("a"), func(c *recipes.SharedLockConfig) { c.Data = []byte("mine") })
			h := get(f, l.AcquireWrite)
			f.is(l.Revoke(f.ctx, h.Znode()), recipes.ErrNotRevocable)
			f.is(l.RevokeForced(f.ctx, h.Znode()), recipes.ErrNotRevocable)
			f.notAsked(h)
		}},
		{"a contender that has left is not an error", func(f *fixture) {
			s := f.open()
			h := f.revocable(s, time.Second)
			f.must(h.Release(f.ctx))
			f.must(f.shared(s, f.path("a")).Revoke(f.ctx, h.Znode()))
			f.must(f.shared(s, f.path("a")).RevokeForced(f.ctx, h.Znode()))
			f.notAsked(h)
		}},
		{"a path that names no contender is ErrInvalid", func(f *fixture) {
			s := f.open()
			h := f.revocable(s, time.Second)
			for _, znode := range []string{"", f.path("a"), f.path("b", "x-read-0000000001"), h.Znode() + "x", f.path("a", "config"), h.Znode() + "/x"} {
				f.is(f.shared(s, f.path("a")).Revoke(f.ctx, znode), recipes.ErrInvalid)
				f.is(f.shared(s, f.path("a")).RevokeForced(f.ctx, znode), recipes.ErrInvalid)
			}
		}},
		{"forced/after the grace the hold is lost", func(f *fixture) {
			h := f.revocable(f.open(), 50*time.Millisecond)
			f.notAsked(h)
			s := f.open()
			w := f.sharedWaits(s, f.path("a"), recipes.Writing)
			f.must(f.shared(s, f.path("a")).Revoke(f.ctx, h.Znode()))
			f.await(h.Revoked(), "the request") // a busy machine may read it only after the short grace
			began := time.Now()
			f.must(f.shared(s, f.path("a")).RevokeForced(f.ctx, h.Znode()))
			waited := time.Since(began)
			f.failIf(waited < 50*time.Millisecond, "the hold ended after %v", waited)
			f.lost(h, recipes.ErrRevoked, recipes.ErrRemoved)
			next := w.must(f)
			f.failIf(next.Token() <= h.Token(), "token %d after %d", next.Token(), h.Token())
			f.is(h.Release(f.ctx), recipes.ErrNotHeld)
			f.held(next)
		}},
		{"forced/it returns when the holder consents", func(f *fixture) {
			h := f.revocable(f.open(), time.Hour)
			l := f.shared(f.open(), f.path("a"))
			call := startErr(f, func() error { return l.RevokeForced(f.ctx, h.Znode()) })
			f.await(h.Revoked(), "the request")
			call.blocked(f)
			f.must(h.Release(f.ctx))
			call.must(f)
		}},
		{"forced/without a grace it is ErrNotRevocable, and the holder is not asked", func(f *fixture) {
			s := f.open()
			h := f.revocable(s, 0)
			f.is(f.shared(s, f.path("a")).RevokeForced(f.ctx, h.Znode()), recipes.ErrNotRevocable)
			f.notAsked(h)
			f.held(h)
		}},
		{"forced/a cancelled call ends no hold", func(f *fixture) {
			h := f.revocable(f.open(), patience)
			l := f.shared(f.open(), f.path("a"))
			ctx, cancel := context.WithCancel(f.ctx)
			defer cancel()
			call := startErr(f, func() error { return l.RevokeForced(ctx, h.Znode()) })
			f.await(h.Revoked(), "the request")
			cancel()
			f.is(call.failure(f), context.Canceled)
			f.must(h.Write(f.ctx))
			f.held(h)
		}},
		// A holder may be stuck or ignore the request. The guard refuses its writes.
		{"forced/the writes of a holder that does not watch are refused", func(f *fixture) {
			h := f.revocable(f.open(), time.Millisecond)
			f.must(f.shared(f.open(), f.path("a")).RevokeForced(f.ctx, h.Znode()))
			f.is(h.Write(f.ctx, recipes.Create(f.path("a", "late"), nil)), recipes.ErrNotHeld, recipes.ErrRemoved)
			f.is(h.Err(), recipes.ErrNotHeld)
			f.failIf(f.exists(f.path("a", "late")), "a late write was committed")
		}},
		{"forced/a request that was overwritten ends no hold", func(f *fixture) {
			s, l := f.open(), f.shared(f.open(), f.path("a"))
			for grace := 200 * time.Millisecond; ; grace *= 2 {
				h := f.revocable(s, grace)
				call := startErr(f, func() error { return l.RevokeForced(f.ctx, h.Znode()) })
				f.await(h.Revoked(), "the request")
				_, err := f.outside.Set(h.Znode(), []byte("never mind"), -1)
				if err == zk.ErrNoNode { // on a busy machine, the grace was over
					call.must(f)
					continue
				}
				f.must(err)
				f.is(call.failure(f), recipes.ErrBadVersion)
				f.held(h)
				f.failIf(!f.exists(h.Znode()), "the znode was deleted")
				return
			}
		}},
	}
}

func allow(grace time.Duration) func(*recipes.SharedLockConfig) {
	return func(c *recipes.SharedLockConfig) { c.Revocable, c.Grace, c.Data = true, grace, []byte("me") }
}

func (f *fixture) revocable(s recipes.Recipes, grace time.Duration) recipes.SharedHold {
	f.Helper()
	return get(f, f.shared(s, f.path("a"), allow(grace)).AcquireWrite)
}

// notAsked checks that no request to give way was written to the holder's znode, and that
// Revoked has not closed. It is also the first call of Revoked, which starts to watch.
func (f *fixture) notAsked(h interface {
	recipes.Grant
	Revoked() <-chan struct{}
}) {
	f.Helper()
	revoked := h.Revoked()
	_, stat, err := f.outside.Get(h.Znode())
	if err != zk.ErrNoNode { // a holder that has left cannot be asked
		f.must(err)
		f.failIf(stat.Version != 0, "%s was asked to give way", h.Znode())
	}
	select {
	case <-revoked:
		f.Errorf("Revoked of %s has closed", h.Znode())
	default:
	}
}
