package recipestest

import (
	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/zkrecipes/recipes"
)

func downgradeTests() []test {
	return []test{
		{"downgrade/the readers directly behind are granted, writers are not", func(f *fixture) {
			h := f.writes(f.open(), f.path("a"))
			r1, r2 := f.sharedWaits(f.open(), f.path("a"), recipes.Reading), f.sharedWaits(f.open(), f.path("a"), recipes.Reading)
			w := f.sharedWaits(f.open(), f.path("a"), recipes.Writing)
			late := f.sharedWaits(f.open(), f.path("a"), recipes.Reading)
			token := h.Token()
			f.must(h.Downgrade(f.ctx))
			a, b := r1.must(f), r2.must(f)
			if h.Mode() != recipes.Reading || h.Token() != token {
				f.Errorf("downgraded to %q, token %d; want read, %d", h.Mode(), h.Token(), token)
			}
			f.held(h)
			f.must(a.Release(f.ctx))
			f.must(b.Release(f.ctx))
			w.blocked(f)
			late.blocked(f)
			f.must(h.Release(f.ctx))
			f.must(w.must(f).Release(f.ctx))
			late.must(f)
		}},
		// CURATOR-621: the downgraded lock waited behind a writer, or both held.
		{"downgrade/the hold stays ahead of a waiting writer", func(f *fixture) {
			h := f.writes(f.open(), f.path("a"))
			s := f.open()
			w := f.sharedWaits(s, f.path("a"), recipes.Writing)
			before := f.stats(s).WatchEvents
			f.must(h.Downgrade(f.ctx)) // does not wait for the writer
			f.reach(s, func(c recipes.Stats) bool { return c.WatchEvents > before })
			f.must(h.Write(f.ctx))
			w.blocked(f)
			f.held(h)
			f.must(h.Release(f.ctx))
			w.must(f)
		}},
		{"downgrade/a reader's call is ErrInvalid, and a second call succeeds", func(f *fixture) {
			s := f.open()
			f.is(f.reads(s, f.path("a")).Downgrade(f.ctx), recipes.ErrInvalid)
			h := f.writes(s, f.path("b"))
			f.must(h.Downgrade(f.ctx))
			f.must(h.Downgrade(f.ctx))
			f.must(h.Release(f.ctx))
			f.is(h.Downgrade(f.ctx), recipes.ErrNotHeld)
		}},
		{"downgrade/TryRead is granted beside it, TryWrite is ErrContended", func(f *fixture) {
			s := f.open()
			h := f.writes(s, f.path("a"))
			f.must(h.Downgrade(f.ctx))
			r := get(f, f.shared(s, f.path("a")).TryRead)
			f.is(errOf(f.shared(s, f.path("a")).TryWrite(f.ctx)), recipes.ErrContended)
			f.must(r.Release(f.ctx))
			w := f.sharedWaits(s, f.path("a"), recipes.Writing)
			f.is(errOf(f.shared(s, f.path("a")).TryRead(f.ctx)), recipes.ErrContended)
			f.must(h.Release(f.ctx))
			w.must(f)
		}},
		{"downgrade/a call on a lost hold is ErrNotHeld", func(f *fixture) {
			s := f.open()
			h := f.writes(s, f.path("a"))
			f.remove(h.Znode())
			f.is(h.Downgrade(f.ctx), recipes.ErrNotHeld, recipes.ErrRemoved)
			g := f.writes(s, f.path("a"))
			f.must(s.Close(f.ctx))
			f.is(g.Downgrade(f.ctx), recipes.ErrNotHeld, recipes.ErrClosed)
		}},
		{"downgrade/the data and a request to give way are kept", func(f *fixture) {
			s := f.open()
			l := f.shared(s, f.path("a"), func(c *recipes.SharedLockConfig) { c.Data, c.Revocable = []byte("me"), true })
			h := get(f, l.AcquireWrite)
			f.must(l.Revoke(f.ctx, h.Znode()))
			f.must(h.Downgrade(f.ctx))
			in := get(f, l.Contenders)
			c := in[0]
			f.failIf(c.Mode != recipes.Reading || !c.Downgraded, "the holder is listed as %+v", c)
			f.failIf(!c.Revoked || !c.Revocable || string(c.Data) != "me", "the holder is listed as %+v", c)
			f.await(h.Revoked(), "the request")
		}},
		// The other library names its znodes as the source text does, and its data does not
		// say whether a holder is revocable.
		{"contenders of other libraries share the wait queue", func(f *fixture) {
			f.create(f.path("a"), "")
			join := func(name string) string {
				return f.theirs(f.path("a", name), "theirs", zk.FlagEphemeral|zk.FlagSequence)
			}
			reader := join("guid-read-")
			h := f.reads(f.open(), f.path("a"))
			w := f.sharedWaits(f.open(), f.path("a"), recipes.Writing)
			writer := join("write-")
			r := f.sharedWaits(f.open(), f.path("a"), recipes.Reading)
			f.must(h.Release(f.ctx))
			w.blocked(f)
			f.remove(reader)
			g := w.must(f)
			f.must(g.Downgrade(f.ctx))
			r.blocked(f) // behind the other library's writer
			f.must(g.Release(f.ctx))
			r.blocked(f)
			f.remove(writer)
			r.must(f)
			f.is(f.shared(f.open(), f.path("a")).Revoke(f.ctx, join("x-read-")), recipes.ErrNotRevocable)
		}},
		{"a reader keeps its place during a lost connection, and misses no downgrade", func(f *fixture) {
			h := f.writes(f.open(), f.path("a"))
			s := f.open()
			r := f.sharedWaits(s, f.path("a"), recipes.Reading)
			f.sever(s)
			f.must(h.Downgrade(f.ctx))
			r.blocked(f)
			f.restore(s)
			g := r.must(f)
			f.failIf(g.Znode() != r.place.Znode, "granted as %s; joined as %s", g.Znode(), r.place.Znode)
			f.held(h)
		}},
		{"the expiry of a session ends its hold", func(f *fixture) {
			s := f.open()
			a, b := f.reads(s, f.path("a")), f.reads(f.open(), f.path("a"))
			w := f.sharedWaits(f.open(), f.path("a"), recipes.Writing)
			f.expire(s)
			f.lost(a, recipes.ErrExpired, recipes.ErrSessionLost)
			w.blocked(f)
			f.must(b.Release(f.ctx))
			w.must(f)
		}},
	}
}
