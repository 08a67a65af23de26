package recipestest

import (
	"context"
	"errors"
	"strconv"
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

// counted sets the record as after a turn that began at a time of the server, plus by.
func (f *fixture) counted(by time.Duration) time.Time {
	f.Helper()
	h, turn := f.due(f.open())
	at := turn.Began().Add(by)
	f.must(h.Write(f.ctx, recipes.Set(f.path("l", record), strconv.AppendInt(nil, at.UnixMilli(), 10), recipes.AnyVersion)))
	f.must(h.Release(f.ctx))
	return at
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
			f.must(s.Close(f.ctx)) // as after its death
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
