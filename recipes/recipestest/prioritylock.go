package recipestest

import (
	"context"
	"regexp"
	"strings"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// priorityTests tests what a priority lock promises.
func priorityTests() []test {
	return []test{
		{"a znode's name says its mode and priority, and whether it holds or waits", func(f *fixture) {
			s := f.open()
			h := f.priorityHeld(s, recipes.Writing, at(7))
			w := f.priorityWaits(s, recipes.Reading, at(42))
			for znode, marker := range map[string]string{h.Znode(): "writing-07-", w.place.Znode: "read-42-"} {
				name := strings.TrimPrefix(znode, f.path("a")+"/")
				want := `^_c_` + guid + `-` + marker + `[0-9]{10}$`
				f.failIf(!regexp.MustCompile(want).MatchString(name), "znode %s; want a name like %s", znode, want)
			}
			_, stat := f.read(h.Znode())
			if int64(h.Token()) != stat.Czxid || stat.EphemeralOwner != s.ID() || h.Mode() != recipes.Writing {
				f.Errorf("%s: token %d, mode %s; its Stat is %+v", h.Znode(), h.Token(), h.Mode(), stat)
			}
			f.must(h.Release(f.ctx))
			f.must(w.must(f).Release(f.ctx))
			f.awaitChildren(f.path("a"), 0)
		}},
		{"readers share, a writer excludes all others", func(f *fixture) {
			s := f.open()
			a, b := f.priorityHeld(s, recipes.Reading), f.priorityHeld(f.open(), recipes.Reading, at(9))
			w := f.priorityWaits(f.open(), recipes.Writing)
			r := f.priorityWaits(f.open(), recipes.Reading)
			f.must(a.Release(f.ctx))
			w.blocked(f)
			f.must(b.Release(f.ctx))
			h := w.must(f)
			r.blocked(f)
			f.must(h.Write(f.ctx))
			f.must(h.Release(f.ctx))
			r.must(f)
		}},
		{"a higher priority ends no hold, is granted before lower ones whenever it joins, and tokens grow with every grant", func(f *fixture) {
			h := f.priorityHeld(f.open(), recipes.Writing, at(50))
			low := f.priorityWaits(f.open(), recipes.Writing, at(60))
			middle := f.priorityWaits(f.open(), recipes.Writing, at(30))
			high := f.priorityWaits(f.open(), recipes.Writing, at(10))
			if high.place.Position != 1 || middle.place.Position != 1 || low.place.Position != 1 {
				f.Errorf("joined at %d, %d, %d; want each directly behind the holder", low.place.Position, middle.place.Position, high.place.Position)
			}
			f.must(h.Write(f.ctx))
			high.blocked(f)
			for _, next := range []*waitingCall[recipes.PriorityHold]{high, middle, low} {
				f.must(h.Release(f.ctx))
				g := next.must(f)
				f.failIf(g.Token() <= h.Token(), "token %d after %d", g.Token(), h.Token())
				h = g
			}
		}},
		{"within a priority, grants follow the order of joining", func(f *fixture) {
			h := f.priorityHeld(f.open(), recipes.Writing, at(5))
			var all []*waitingCall[recipes.PriorityHold]
			for range 4 {
				all = append(all, f.priorityWaits(f.open(), recipes.Writing, at(5)))
			}
			for i, next := range all {
				f.must(h.Release(f.ctx))
				h = next.must(f)
				for _, later := range all[i+1:] {
					later.blocked(f)
				}
			}
		}},
		{"a reader waits only for writers with the same or a higher priority", func(f *fixture) {
			s := f.open()
			h := f.priorityHeld(s, recipes.Reading, at(5))
			w := f.priorityWaits(f.open(), recipes.Writing, at(5))
			f.priorityHeld(f.open(), recipes.Reading, at(4)) // passes the writer, whose priority is lower
			same := f.priorityWaits(f.open(), recipes.Reading, at(5))
			same.blocked(f)
			w.blocked(f)
			f.held(h)
			w.cancel()
			same.must(f)
		}},
		{"at most one of many writers holds at a time", func(f *fixture) {
			const turns = 8
			f.create(f.path("a"), "")
			var contenders []line
			for i := range 5 {
				contenders = append(contenders, priorityKind.with(f, f.open(), f.path("a"), options{Priority: i % 3}))
			}
			check := exclusive{f: f}
			f.takeTurns(contenders, turns, check.enter, check.leave)
			want := len(contenders) * turns
			f.failIf(check.grants != want, "%d grants; want %d", check.grants, want)
		}},
		{"try/a call with contenders ahead is ErrContended, and the contender leaves", func(f *fixture) {
			s := f.open()
			h := f.priorityHeld(s, recipes.Reading, at(5))
			r := get(f, f.priority(s, at(9)).TryRead)
			f.is(errOf(f.priority(s, at(0)).TryWrite(f.ctx)), recipes.ErrContended)
			f.awaitChildren(f.path("a"), 2)
			f.must(h.Release(f.ctx))
			f.must(r.Release(f.ctx))
			get(f, f.priority(s, at(0)).TryWrite)
		}},
		{"a cancelled waiter leaves the wait queue", priorityKind.of(cancelLeaves)},
		// A waiter watches its own znode, so it notices the deletion while another contender holds.
		{"a waiter whose znode is deleted gets ErrRemoved", func(f *fixture) {
			h := f.priorityHeld(f.open(), recipes.Writing)
			w := f.priorityWaits(f.open(), recipes.Writing)
			f.remove(w.place.Znode)
			f.is(w.failure(f), recipes.ErrRemoved)
			h.Done()
			f.remove(h.Znode())
			f.lost(h, recipes.ErrRemoved)
		}},
		{"a release during a lost connection is not missed", priorityKind.of(departureWhileSevered)},
		{"a grant whose reply is lost is granted once", func(f *fixture) {
			h := f.priorityHeld(f.open(), recipes.Writing)
			s := f.open()
			w := f.priorityWaits(s, recipes.Writing)
			f.relay(s).HoldReplies()
			f.must(h.Release(f.ctx))
			f.lose(s)
			g := w.must(f)
			f.held(g)
			if names := f.children(f.path("a")); len(names) != 1 || f.path("a", names[0]) != g.Znode() {
				f.Errorf("granted as %s; the wait queue is %v", g.Znode(), names)
			}
			f.must(g.Release(f.ctx))
		}},
		{"the next waiter is granted when the holder's session expires", priorityKind.of(nextAfterExpiry)},
		{"a release that the server refuses can be repeated", priorityKind.of(releaseRefused)},
		{"contenders are returned in the order of their grants", func(f *fixture) {
			s := f.open()
			l := f.priority(s)
			in, err := l.Contenders(f.ctx)
			f.failIf(err != nil || len(in) != 0, "an empty wait queue: %v, %v", in, err)
			h := f.priorityHeld(s, recipes.Reading, at(50), func(c *recipes.PriorityLockConfig) {
				c.Data, c.Revocable, c.Grace = []byte("me"), true, time.Second
			})
			f.priorityWaits(s, recipes.Writing, at(60))
			f.priorityWaits(s, recipes.Writing, at(40))
			in = get(f, l.Contenders)
			if len(in) != 3 {
				f.Fatalf("the wait queue is %+v", in)
			}
			c := in[0]
			if !c.Holds || c.Znode != h.Znode() || c.Token != h.Token() || c.Priority != 50 || c.Mode != recipes.Reading ||
				string(c.Data) != "me" || !c.Revocable || c.Grace != time.Second || c.Revoked || c.Successor || c.SessionID != s.ID() {
				f.Errorf("the holder is listed as %+v", c)
			}
			for i, want := range []int{40, 60} {
				if c := in[i+1]; c.Holds || c.Priority != want || c.Mode != recipes.Writing || c.Revocable {
					f.Errorf("waiter %d is listed as %+v", i, c)
				}
			}
		}},
		{"a path with other data is ErrMismatch", func(f *fixture) {
			f.create(f.path("a"), "other data")
			f.is(errOf(f.priority(f.open()).AcquireRead(f.ctx)), recipes.ErrMismatch)
			f.awaitChildren(f.path("a"), 0)
			data, stat := f.read(f.path("a"))
			f.failIf(data != "other data" || stat.Version != 0, "the path has data %q", data)
		}},
		{"a bad path, priority, grace or strategy is ErrInvalid", func(f *fixture) {
			s := f.open()
			for _, cfg := range []recipes.PriorityLockConfig{
				{Priority: -1}, {Priority: 100}, {Grace: time.Second}, {Strategy: "no such"},
			} {
				f.is(errOf(s.PriorityLock(f.path("a"), cfg)), recipes.ErrInvalid)
			}
			f.is(errOf(s.PriorityLock("relative", recipes.PriorityLockConfig{})), recipes.ErrInvalid)
		}},
	}
}

func at(priority int) func(*recipes.PriorityLockConfig) {
	return func(c *recipes.PriorityLockConfig) { c.Priority = priority }
}

func (f *fixture) priority(s recipes.Recipes, o ...func(*recipes.PriorityLockConfig)) recipes.PriorityLock {
	f.Helper()
	var cfg recipes.PriorityLockConfig
	for _, change := range o {
		change(&cfg)
	}
	return must.Get(s.PriorityLock(f.path("a"), cfg))(f)
}

func (f *fixture) priorityHeld(s recipes.Recipes, mode recipes.Mode, o ...func(*recipes.PriorityLockConfig)) recipes.PriorityHold {
	f.Helper()
	acquire := f.priority(s, o...).AcquireWrite
	if mode == recipes.Reading {
		acquire = f.priority(s, o...).AcquireRead
	}
	return must.Get(acquire(f.ctx))(f)
}

func (f *fixture) priorityWaits(s recipes.Recipes, mode recipes.Mode, o ...func(*recipes.PriorityLockConfig)) *waitingCall[recipes.PriorityHold] {
	f.Helper()
	return waits(f, func(joined func(recipes.Place)) func(context.Context) (recipes.PriorityHold, error) {
		l := f.priority(s, append(o, func(c *recipes.PriorityLockConfig) { c.Joined = joined })...)
		if mode == recipes.Reading {
			return l.AcquireRead
		}
		return l.AcquireWrite
	})
}
