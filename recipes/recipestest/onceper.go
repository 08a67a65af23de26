package recipestest

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/recipes"
)

const (
	day    = 24 * time.Hour
	record = "once" // below the path of the lock
)

// oncePer acquires the lock "l" and asks for a turn a day.
func (f *fixture) oncePer(s recipes.Client) (recipes.Hold, *recipes.Turn, error) {
	f.Helper()
	h := f.acquire(s, f.path("l"))
	turn, err := recipes.OncePer(f.ctx, h, f.config(s, f.path("l")), day)
	return h, turn, err
}

// due is oncePer where a turn is due.
func (f *fixture) due(s recipes.Client) (recipes.Hold, *recipes.Turn) {
	f.Helper()
	h, turn, err := f.oncePer(s)
	f.must(err)
	return h, turn
}

// notDue is oncePer where no turn is due. It releases the lock.
func (f *fixture) notDue(s recipes.Client) *recipes.NotDueError {
	f.Helper()
	h, _, err := f.oncePer(s)
	var early *recipes.NotDueError
	f.failIf(!errors.As(err, &early), "error %v; want a *recipes.NotDueError", err)
	f.held(h)
	f.must(h.Release(f.ctx))
	return early
}

// counted sets the record as if a turn had been counted that began at the server's time plus by.
func (f *fixture) counted(by time.Duration) time.Time {
	f.Helper()
	h, turn := f.due(f.open())
	at := turn.Began().Add(by)
	f.must(h.Write(f.ctx, recipes.Set(f.path("l", record), strconv.AppendInt(nil, at.UnixMilli(), 10), recipes.AnyVersion)))
	f.must(h.Release(f.ctx))
	return at
}

// interrupted is a record. Before each read after the first it calls meanwhile.
type interrupted struct {
	recipes.Configuration
	reads     int
	meanwhile func()
}

func (c *interrupted) Get(ctx context.Context, key string) (recipes.Entry, error) {
	if c.reads++; c.reads > 1 {
		c.meanwhile()
	}
	return c.Configuration.Get(ctx, key)
}

// late is a grant whose writes reach the server late, if keep is set: the caller learns that their
// outcome is unknown.
type late struct {
	recipes.Grant
	keep bool
	kept []recipes.Op
}

func (g *late) Write(ctx context.Context, ops ...recipes.Op) error {
	if g.keep {
		g.keep, g.kept = false, append(g.kept, ops...)
		return recipes.ErrUnknownOutcome
	}
	return g.Grant.Write(ctx, ops...)
}

// arrive makes the writes that were kept. None is carried out.
func (g *late) arrive(f *fixture, errs ...error) {
	f.Helper()
	f.failIf(len(g.kept) != len(errs), "%d writes were kept", len(g.kept))
	for i, op := range g.kept {
		f.is(g.Grant.Write(f.ctx, op), errs[i])
	}
	g.kept = nil
}

func oncePerTests() []test {
	return []test{
		{"a turn that counts is the last one in its period", func(f *fixture) {
			s := f.open()
			h, turn := f.due(s)
			_, stat := f.read(f.path("l", record))
			f.failIf(turn.Began().UnixMilli() != stat.Mtime, "began %v; the record was written at %v", turn.Began(), time.UnixMilli(stat.Mtime))
			f.must(turn.Count(f.ctx))
			f.must(turn.Count(f.ctx))
			f.held(h)
			f.must(h.Release(f.ctx))
			for _, s := range []recipes.Client{s, f.open()} {
				early := f.notDue(s)
				f.failIf(!early.Last.Equal(turn.Began()) || early.Period != day || early.Back != 0, "%+v; the turn began at %v", early, turn.Began())
			}
		}},
		{"the period is over after it, and not before", func(f *fixture) {
			f.counted(-day + time.Minute)
			f.notDue(f.open())
			f.remove(f.path("l", record))
			f.counted(-day)
			f.due(f.open())
		}},
		{"a turn that does not count changes nothing", func(f *fixture) {
			last := f.counted(-25 * time.Hour)
			h, _ := f.due(f.open())
			f.must(h.Release(f.ctx))
			s := f.open()
			f.due(s)
			f.must(s.Close(f.ctx)) // as if its process had died
			data, _ := f.read(f.path("l", record))
			f.failIf(data != strconv.FormatInt(last.UnixMilli(), 10), "the record is %s; want %d", data, last.UnixMilli())
			f.due(f.open())
		}},
		{"the first turn that does not count leaves an empty record", func(f *fixture) {
			h, _ := f.due(f.open())
			f.must(h.Release(f.ctx))
			data, _ := f.read(f.path("l", record))
			f.failIf(data != "", "the record is %q", data)
			f.due(f.open())
		}},
		{"a clock that was set back starts the period again, once", func(f *fixture) {
			f.counted(time.Hour)
			first := f.notDue(f.open())
			f.failIf(first.Back <= 0 || first.Back > time.Hour, "%+v", first)
			second := f.notDue(f.open())
			f.failIf(second.Back != 0 || !second.Last.Equal(first.Last), "%+v after %+v", second, first)
		}},
		{"without the grant nothing counts", func(f *fixture) {
			s := f.open()
			lost, turn := f.due(s)
			f.remove(lost.Znode())
			f.is(turn.Count(f.ctx), recipes.ErrNotHeld, recipes.ErrRemoved)
			h, turn := f.due(f.open())
			f.must(turn.Count(f.ctx))
			f.is(errOf(recipes.OncePer(f.ctx, lost, f.config(s, f.path("l")), day)), recipes.ErrNotHeld)
			f.must(h.Release(f.ctx))
			f.notDue(f.open())
		}},
		{"another holder's turn between the write and its time makes none due", func(f *fixture) {
			f.counted(-25 * time.Hour)
			s := f.open()
			lost := f.acquire(s, f.path("l"))
			record := &interrupted{Configuration: f.config(s, f.path("l"))}
			record.meanwhile = sync.OnceFunc(func() {
				f.remove(lost.Znode())
				h, turn := f.due(f.open())
				f.must(turn.Count(f.ctx))
				f.must(h.Release(f.ctx))
			})
			turn, err := recipes.OncePer(f.ctx, lost, record, day)
			var early *recipes.NotDueError
			f.failIf(turn != nil || !errors.As(err, &early), "turn %v, error %v", turn, err)
		}},
		{"a write that arrives late changes nothing", func(f *fixture) {
			s := f.open()
			c := f.config(s, f.path("l"))
			g := &late{Grant: f.acquire(s, f.path("l"))}
			for _, first := range []error{recipes.ErrNodeExists, recipes.ErrBadVersion} { // the first turn creates the record
				g.keep = true
				turn, err := recipes.OncePer(f.ctx, g, c, day)
				f.must(err)
				g.keep = true
				f.must(turn.Count(f.ctx))
				g.arrive(f, first, recipes.ErrBadVersion)
				err = errOf(recipes.OncePer(f.ctx, g, c, day))
				var early *recipes.NotDueError
				f.failIf(!errors.As(err, &early) || !early.Last.Equal(turn.Began()), "error %v; the turn began at %v", err, turn.Began())
				f.must(g.Write(f.ctx, recipes.Set(f.path("l", record), []byte("1"), recipes.AnyVersion)))
			}
		}},
		{"a record that is deleted during the work is created again", func(f *fixture) {
			h, turn := f.due(f.open())
			f.remove(f.path("l", record))
			f.must(turn.Count(f.ctx))
			f.must(h.Release(f.ctx))
			f.notDue(f.open())
		}},
		{"without the configuration's znode it is ErrNoNode", func(f *fixture) {
			s := f.open()
			h := f.acquire(s, f.path("l"))
			f.is(errOf(recipes.OncePer(f.ctx, h, f.config(s, f.path("none")), day)), recipes.ErrNoNode)
			f.create(f.path("c"), "")
			turn, err := recipes.OncePer(f.ctx, h, f.config(s, f.path("c")), day)
			f.must(err)
			f.remove(f.path("c", record))
			f.remove(f.path("c"))
			f.is(turn.Count(f.ctx), recipes.ErrNoNode)
		}},
		{"the loss of the session is ErrNotHeld", func(f *fixture) {
			s := f.open()
			h, turn := f.due(s)
			f.must(s.Close(f.ctx))
			f.is(errOf(recipes.OncePer(f.ctx, h, f.config(s, f.path("l")), day)), recipes.ErrNotHeld, recipes.ErrClosed)
			f.is(turn.Count(f.ctx), recipes.ErrNotHeld, recipes.ErrClosed)
			f.due(f.open())
		}},
		{"a leadership is a grant too", func(f *fixture) {
			s := f.open()
			leader := must.Get(f.election(s, f.path("l")).Campaign(f.ctx, nil))(f)
			turn, err := recipes.OncePer(f.ctx, leader, f.config(s, f.path("l")), day)
			f.must(err)
			f.must(turn.Count(f.ctx))
			var early *recipes.NotDueError
			err = errOf(recipes.OncePer(f.ctx, leader, f.config(s, f.path("l")), day))
			f.failIf(!errors.As(err, &early), "error %v", err)
		}},
		{"the data of another program is ErrMismatch, and stays", func(f *fixture) {
			for _, data := range []string{"yesterday", "-5", "1.5"} {
				f.create(f.path("l", record), data)
				h, _, err := f.oncePer(f.open())
				f.is(err, recipes.ErrMismatch)
				f.must(h.Release(f.ctx))
				got, _ := f.read(f.path("l", record))
				f.failIf(got != data, "the record is %q", got)
				f.remove(f.path("l", record))
			}
		}},
		{"a period that is not positive is ErrInvalid, and nothing is sent", func(f *fixture) {
			s := f.open()
			h := f.acquire(s, f.path("l"))
			f.sendsNothing(s, func() {
				for _, period := range []time.Duration{0, -day} {
					f.is(errOf(recipes.OncePer(f.ctx, h, f.config(s, f.path("l")), period)), recipes.ErrInvalid)
				}
			})
		}},
		{"a context that has ended ends both calls", func(f *fixture) {
			s := f.open()
			h, turn := f.due(s)
			f.is(errOf(recipes.OncePer(f.ended(), h, f.config(s, f.path("l")), day)), context.Canceled)
			f.is(turn.Count(f.ended()), context.Canceled)
			f.must(h.Release(f.ctx))
			f.due(f.open())
		}},
	}
}
