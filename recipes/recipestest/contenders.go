package recipestest

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/recipes"
)

func contendersTests() []test {
	return []test{
		{"the contenders of all recipes are returned, one recipe after the other", func(f *fixture) {
			s, other := f.open(), f.open()
			holder := f.fill(s, f.path("a"))
			lines := f.contenders(other, f.path("a"), filled)
			f.failIf(lines.Permits != 2, "%d permits; want 2", lines.Permits)
			for i, c := range lines.Contenders {
				f.failIf((c.SessionID == s.ID()) != (i < 2) || c.SessionID == 0 || c.Since.IsZero(), "returned as %+v", c)
			}
			if c := lines.Contenders[0]; c.Znode != holder.Znode() || c.Token != holder.Token() {
				f.Errorf("the holder is returned as %+v; want znode %s, token %d", c, holder.Znode(), holder.Token())
			}
		}},
		{"the children of a path are listed, whatever they are", func(f *fixture) {
			s := f.open()
			h := f.acquire(s, f.path("a/b"))
			f.create(f.path("a/c"), "")
			f.same(fmt.Sprint(must.Get(s.Children(f.ctx, f.path("a")))(f)), "[b c]")
			f.same(fmt.Sprint(must.Get(s.Children(f.ctx, f.path("a/b")))(f)), "["+strings.TrimPrefix(h.Znode(), f.path("a/b")+"/")+"]")
			f.same(fmt.Sprint(must.Get(s.Children(f.ctx, f.path("a/c")))(f)), "[]")
			_, err := s.Children(f.ctx, f.path("none"))
			f.is(err, recipes.ErrNoNode)
			_, err = s.Children(f.ctx, "relative")
			f.is(err, recipes.ErrInvalid)
		}},
		{"ReadsPerSecond spreads reads, also those of one call", func(f *fixture) {
			f.fill(f.open(), f.path("a"))
			s := f.open(func(c *recipes.SessionConfig) { c.ReadsPerSecond = 50 })
			before := must.Get(s.Stats(f.ctx))(f)
			start := time.Now()
			for range 2 {
				must.Get(s.Children(f.ctx, f.path("a")))(f)
				must.Get(s.Contenders(f.ctx, f.path("a")))(f)
			}
			took := time.Since(start)
			reads := must.Get(s.Stats(f.ctx))(f).Reads - before.Reads
			// Only the first read is not delayed.
			f.failIf(reads < 10 || took < time.Duration(reads-1)*time.Second/50, "%d reads in %v", reads, took)
		}},
		{"a priority lock's holders come first, then its successor, then its waiters by priority", func(f *fixture) {
			s := f.open()
			h := f.priorityHeld(s, recipes.Reading, at(50))
			f.priorityWaits(s, recipes.Writing, at(7))
			named := f.priorityWaits(s, recipes.Writing, at(99))
			lines := f.contenders(s, f.path("a"), "priority-lock read 50 holds, priority-lock write 7 waits, priority-lock write 99 waits")
			c := lines.Contenders
			f.failIf(c[0].Token != h.Token() || c[1].Token != 0 || c[2].Token != 0, "returned as %+v", c)
			other := f.priorityHeld(s, recipes.Reading, at(0), func(c *recipes.PriorityLockConfig) { c.Data = []byte("it") })
			f.must(h.HandOff(f.ctx, named.place.Znode))
			lines = f.contenders(s, f.path("a"), "priority-lock read 0 holds, priority-lock write 99 successor waits, priority-lock write 7 waits")
			if c := lines.Contenders[0]; c.Znode != other.Znode() || string(c.Data) != "it" {
				f.Errorf("the holder is returned as %+v", c)
			}
		}},
		{"each recipe returns the same contenders as Contenders with its kind", func(f *fixture) {
			s := f.open()
			f.fill(s, f.path("a"))
			lines := must.Get(s.Contenders(f.ctx, f.path("a")))(f)
			for kind, ask := range map[recipes.Kind]func(context.Context) ([]recipes.Contender, error){
				recipes.KindLock:       f.lock(s, f.path("a")).Contenders,
				recipes.KindSharedLock: f.shared(s, f.path("a")).Contenders,
				recipes.KindSemaphore:  f.semaphore(s, f.path("a"), 7).Contenders, // Contenders does not compare the number with the stored one
				recipes.KindElection:   f.election(s, f.path("a")).Candidates,
			} {
				line := must.Get(ask(f.ctx))(f)
				only := must.Get(s.Contenders(f.ctx, f.path("a"), kind))(f)
				f.same(showLines(only), showLines(recipes.Lines{Contenders: line}))
				f.failIf((only.Permits == 2) != (kind == recipes.KindSemaphore), "%s: %d permits", kind, only.Permits)
				f.same(showLines(only), showLines(recipes.Lines{Contenders: lines.Of(kind)}))
			}
		}},
		{"the permits stored at the path are returned, even if no contender exists", func(f *fixture) {
			f.create(f.path("a"), "") // persistent: the server would delete a container after its last child
			s := f.open()
			h := f.permit(s, f.path("a"), 3)
			lines := f.contenders(s, f.path("a"), "semaphore holds")
			f.failIf(lines.Permits != 3, "%d permits; want 3", lines.Permits)
			lines, err := s.Contenders(f.ctx, f.path("a"), recipes.KindPriorityLock) // reads the data of the path too
			f.must(err)
			f.failIf(lines.Permits != 0, "%d permits without KindSemaphore", lines.Permits)
			f.must(h.Release(f.ctx))
			if lines := f.contenders(s, f.path("a"), ""); lines.Permits != 3 {
				f.Errorf("%d permits without contenders; want 3", lines.Permits)
			}
		}},
		{"the verdicts say which recipes could join in which dialect", func(f *fixture) {
			s := f.open()
			h := f.acquire(s, f.path("a"))
			lines := must.Get(s.Contenders(f.ctx, f.path("a")))(f)
			met := recipes.ForeignError{Dialect: recipes.ZooKeeper, Recipe: "Lock", Znode: h.Znode()}
			join := 0
			for _, v := range lines.Verdicts {
				switch {
				case v.Foreign != nil && *v.Foreign != met:
					f.Errorf("%+v meets %v; want %v", v, v.Foreign, &met)
				case v.Foreign == nil && v.Kind == recipes.KindLock && v.Dialect != recipes.Kazoo:
					join++
				case v.Foreign == nil:
					f.Errorf("%s in %s could join a lock's wait queue", v.Kind, v.Dialect)
				}
			}
			if join != 2 || len(lines.Verdicts) != 13 {
				f.Errorf("%d of %d verdicts say that the recipe could join; want 2 of 13", join, len(lines.Verdicts))
			}
			some := must.Get(s.Contenders(f.ctx, f.path("a"), recipes.KindLock))(f)
			f.failIf(len(some.Verdicts) > 0, "verdicts without all kinds: %+v", some.Verdicts)
		}},
		{"readers ahead of the first writer hold", func(f *fixture) {
			s := f.open()
			f.reads(s, f.path("a"))
			f.reads(s, f.path("a"))
			f.sharedWaits(s, f.path("a"), recipes.Writing)
			f.sharedWaits(s, f.path("a"), recipes.Reading)
			f.contenders(s, f.path("a"), "shared-lock read holds, shared-lock read holds, shared-lock write waits, shared-lock read waits")
		}},
		{"other children and other data are ignored", func(f *fixture) {
			s := f.open()
			f.create(f.path("a"), "permits=many")
			f.create(f.path("a", "qn-0000000001"), "")
			f.create(f.path("a", "lock-1"), "")
			lines := f.contenders(s, f.path("a"), "")
			f.failIf(lines.Permits != 0, "%d permits", lines.Permits)
		}},
		{"a path that does not exist has no contenders; bad arguments are ErrInvalid", func(f *fixture) {
			s := f.open()
			f.contenders(s, f.path("nowhere"), "")
			f.is(errOf(s.Contenders(f.ctx, "relative")), recipes.ErrInvalid)
			f.is(errOf(s.Contenders(f.ctx, f.path("a"), recipes.KindLock, "queue")), recipes.ErrInvalid)
			f.must(s.Close(f.ctx))
			f.is(errOf(s.Contenders(f.ctx, f.path("a"))), recipes.ErrSessionLost, recipes.ErrClosed)
		}},
		{"a call costs one listing, a read for each contender, and a read of the path if its data matters", func(f *fixture) {
			f.fill(f.open(), f.path("a"))
			s := f.open()
			for _, c := range []struct {
				kinds []recipes.Kind
				other int64 // reads that are not of a contender
			}{{nil, 2}, {[]recipes.Kind{recipes.KindSemaphore}, 2}, {[]recipes.Kind{recipes.KindElection, recipes.KindLock}, 1}} {
				was := f.stats(s)
				lines := must.Get(s.Contenders(f.ctx, f.path("a"), c.kinds...))(f)
				now := f.stats(s)
				if reads, want := now.Reads-was.Reads, c.other+int64(len(lines.Contenders)); reads != want || now.Writes != was.Writes {
					f.Errorf("%s: %d reads, %d writes; want %d, none", c.kinds, reads, now.Writes-was.Writes, want)
				}
			}
		}},
	}
}

// showLines names each contender's recipe, and says whether it holds or waits.
func showLines(lines recipes.Lines) string {
	var all []string
	for _, c := range lines.Contenders {
		text := string(c.Kind)
		if c.Mode != "" {
			text += " " + string(c.Mode)
		}
		if c.Kind == recipes.KindPriorityLock {
			text += fmt.Sprint(" ", c.Priority)
		}
		if c.Successor {
			text += " successor"
		}
		all = append(all, text+map[bool]string{true: " holds", false: " waits"}[c.Holds])
	}
	return strings.Join(all, ", ")
}

func (f *fixture) contenders(s recipes.Recipes, path, want string) recipes.Lines {
	f.Helper()
	lines := must.Get(s.Contenders(f.ctx, path))(f)
	got := showLines(lines)
	f.failIf(got != want, "the contenders of %s are %q; want %q", path, got, want)
	return lines
}

func (f *fixture) same(got, want string) {
	f.Helper()
	f.failIf(got != want || got == "", "%q; want %q", got, want)
}

// fill creates contenders of all recipes at path, except the priority lock: its path needs other
// data than a semaphore's. The lock's contenders belong to the session. Recipes refuse to share a
// path, so another client creates the znodes of the others.
func (f *fixture) fill(s recipes.Client, path string) (holder recipes.Grant) {
	f.Helper()
	holder = f.acquire(s, path)
	lockKind.waits(f, s, path)
	for _, name := range []string{"write-", "read-", "lease-", "lease-", "lease-", "n_", "n_"} {
		f.theirs(path+"/"+foreignName("-"+name), "", zk.FlagEphemeral|zk.FlagSequence)
	}
	must.Get(f.outside.Set(path, []byte("permits=2"), recipes.AnyVersion))(f)
	return holder
}

const filled = "lock holds, lock waits, shared-lock write holds, shared-lock read waits, " +
	"semaphore holds, semaphore holds, semaphore waits, election holds, election waits"
