package recipestest

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// sharedLockTests tests what a shared lock promises. It treats Handoff as Predecessor.
func sharedLockTests() []test {
	return slices.Concat(queued(writersKind, recipes.Herd, recipes.Predecessor), []test{
		{"the znodes are named as documented", func(f *fixture) {
			s := f.open()
			r := f.reads(s, f.path("a"))
			w := f.sharedWaits(s, f.path("a"), recipes.Writing)
			for znode, marker := range map[string]string{r.Znode(): "read-", w.place.Znode: "write-"} {
				name := strings.TrimPrefix(znode, f.path("a")+"/")
				want := `^_c_` + guid + `-` + marker + `[0-9]{10}$`
				f.failIf(!regexp.MustCompile(want).MatchString(name), "znode %s; want a name like %s", znode, want)
			}
			f.failIf(r.Mode() != recipes.Reading, "a reader's mode is %q", r.Mode())
		}},
		{"readers share", func(f *fixture) {
			s, other := f.open(), f.open()
			a, b, c := f.reads(s, f.path("a")), f.reads(s, f.path("a")), f.reads(other, f.path("a"))
			for _, h := range []recipes.SharedHold{a, b, c} {
				f.held(h)
				f.must(h.Write(f.ctx))
			}
			for _, h := range []recipes.SharedHold{b, a, c} {
				f.must(h.Release(f.ctx))
			}
			f.awaitChildren(f.path("a"), 0)
		}},
		{"a writer waits for all readers, and readers for a writer", func(f *fixture) {
			s := f.open()
			a, b := f.reads(s, f.path("a")), f.reads(s, f.path("a"))
			w := f.sharedWaits(f.open(), f.path("a"), recipes.Writing)
			f.must(b.Release(f.ctx))
			w.blocked(f)
			f.must(a.Release(f.ctx))
			h := w.must(f)
			f.failIf(h.Mode() != recipes.Writing, "a writer's mode is %q", h.Mode())
			next := f.sharedWaits(s, f.path("a"), recipes.Writing)
			r := f.sharedWaits(s, f.path("a"), recipes.Reading)
			f.must(h.Release(f.ctx))
			h = next.must(f)
			r.blocked(f)
			f.must(h.Release(f.ctx))
			r.must(f)
		}},
		{"when a writer releases, only the readers directly behind it are granted, none behind another writer", func(f *fixture) {
			s := f.open()
			h := f.writes(s, f.path("a"))
			var readers []*waitingCall[recipes.SharedHold]
			for range 4 {
				readers = append(readers, f.sharedWaits(f.open(), f.path("a"), recipes.Reading))
			}
			w := f.sharedWaits(f.open(), f.path("a"), recipes.Writing)
			late := f.sharedWaits(f.open(), f.path("a"), recipes.Reading)
			f.must(h.Release(f.ctx))
			for _, r := range readers {
				defer func(h recipes.SharedHold) { f.held(h) }(r.must(f))
			}
			w.blocked(f)
			late.blocked(f)
		}},
		{"when a waiting writer leaves, the readers behind it are granted", func(f *fixture) {
			s := f.open()
			f.reads(s, f.path("a"))
			w := f.sharedWaits(s, f.path("a"), recipes.Writing)
			r := f.sharedWaits(f.open(), f.path("a"), recipes.Reading)
			r.blocked(f)
			w.cancel()
			f.is(w.failure(f), context.Canceled)
			r.must(f)
		}},
		{"try/TryRead behind a waiting writer is ErrContended", func(f *fixture) {
			s := f.open()
			a := f.reads(s, f.path("a"))
			h := get(f, f.shared(s, f.path("a")).TryRead)
			f.must(h.Release(f.ctx))
			w := f.sharedWaits(s, f.path("a"), recipes.Writing)
			f.is(errOf(f.shared(s, f.path("a")).TryRead(f.ctx)), recipes.ErrContended)
			f.awaitChildren(f.path("a"), 2)
			f.must(a.Release(f.ctx))
			w.must(f)
		}},
		{"try/TryWrite behind a reader is ErrContended", func(f *fixture) {
			s := f.open()
			a := f.reads(s, f.path("a"))
			f.is(errOf(f.shared(s, f.path("a")).TryWrite(f.ctx)), recipes.ErrContended)
			f.must(a.Release(f.ctx))
			h := get(f, f.shared(s, f.path("a")).TryWrite)
			f.must(h.Release(f.ctx))
		}},
		{"contenders are returned with their modes", func(f *fixture) {
			s := f.open()
			l := f.shared(s, f.path("a"), func(c *recipes.SharedLockConfig) {
				c.Data, c.Revocable, c.Grace = []byte("unlock me"), true, 3*time.Second
			})
			h := get(f, l.AcquireWrite)
			f.sharedWaits(s, f.path("a"), recipes.Reading)
			f.sharedWaits(s, f.path("a"), recipes.Writing)
			in := get(f, l.Contenders)
			var modes []recipes.Mode
			for _, c := range in {
				modes = append(modes, c.Mode)
			}
			if !slices.Equal(modes, []recipes.Mode{recipes.Writing, recipes.Reading, recipes.Writing}) {
				f.Fatalf("the wait queue is %v", modes)
			}
			c := in[0]
			if c.Znode != h.Znode() || c.Token != h.Token() || string(c.Data) != "unlock me" || !c.Revocable || c.Grace != 3*time.Second || c.Revoked || c.Downgraded {
				f.Errorf("the holder is listed as %+v", c)
			}
			if c := in[1]; c.Revocable || c.Grace != 0 {
				f.Errorf("a waiter is listed as %+v", c)
			}
		}},
		{"a bad grace or strategy is ErrInvalid", func(f *fixture) {
			s := f.open()
			for _, cfg := range []recipes.SharedLockConfig{
				{Grace: time.Second},
				{Revocable: true, Grace: -1},
				{Revocable: true, Grace: time.Microsecond},
				{Strategy: "no such"},
			} {
				f.is(errOf(s.SharedLock(f.path("a"), cfg)), recipes.ErrInvalid)
			}
		}},
	})
}

func (f *fixture) shared(s recipes.Recipes, path string, o ...func(*recipes.SharedLockConfig)) recipes.SharedLock {
	f.Helper()
	var cfg recipes.SharedLockConfig
	for _, change := range o {
		change(&cfg)
	}
	return must.Get(s.SharedLock(path, cfg))(f)
}

func (f *fixture) reads(s recipes.Recipes, path string) recipes.SharedHold {
	f.Helper()
	return get(f, f.shared(s, path).AcquireRead)
}

func (f *fixture) writes(s recipes.Recipes, path string) recipes.SharedHold {
	f.Helper()
	return get(f, f.shared(s, path).AcquireWrite)
}

func (f *fixture) sharedWaits(s recipes.Recipes, path string, mode recipes.Mode, o ...func(*recipes.SharedLockConfig)) *waitingCall[recipes.SharedHold] {
	f.Helper()
	return waits(f, func(joined func(recipes.Place)) func(context.Context) (recipes.SharedHold, error) {
		l := f.shared(s, path, append(o, func(c *recipes.SharedLockConfig) { c.Joined = joined })...)
		if mode == recipes.Reading {
			return l.AcquireRead
		}
		return l.AcquireWrite
	})
}
