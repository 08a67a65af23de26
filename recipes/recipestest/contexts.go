package recipestest

import (
	"context"
	"errors"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// subject is what the calls of contextTests are made on.
type subject struct {
	session  recipes.Client
	lock     recipes.Lock
	election recipes.Election
	hold     recipes.Hold
	leads    recipes.Leadership
}

// calls are all methods that take a context and talk to the server.
var calls = []struct {
	name string
	call func(context.Context, subject) error
}{
	{"Acquire", func(ctx context.Context, s subject) error { _, err := s.lock.Acquire(ctx); return err }},
	{"TryAcquire", func(ctx context.Context, s subject) error { _, err := s.lock.TryAcquire(ctx); return err }},
	{"Contenders", func(ctx context.Context, s subject) error { _, err := s.lock.Contenders(ctx); return err }},
	{"Recipes.Contenders", func(ctx context.Context, s subject) error {
		_, err := s.session.Contenders(ctx, s.lock.Path())
		return err
	}},
	{"Campaign", func(ctx context.Context, s subject) error { _, err := s.election.Campaign(ctx, nil); return err }},
	{"Leader", func(ctx context.Context, s subject) error { _, err := s.election.Leader(ctx); return err }},
	{"Acknowledged", func(ctx context.Context, s subject) error { _, err := s.election.Acknowledged(ctx); return err }},
	{"Observe", func(ctx context.Context, s subject) error { _, err := s.election.Observe(ctx); return err }},
	{"Candidates", func(ctx context.Context, s subject) error { _, err := s.election.Candidates(ctx); return err }},
	{"Write", func(ctx context.Context, s subject) error { return s.hold.Write(ctx) }},
	{"Acknowledge", func(ctx context.Context, s subject) error { return s.leads.Acknowledge(ctx, nil) }},
	{"Release", func(ctx context.Context, s subject) error { return s.hold.Release(ctx) }},
	{"Resign", func(ctx context.Context, s subject) error { return s.leads.Resign(ctx) }},
}

// contextTests are about contexts that end, for every call alike.
func contextTests() []test {
	var tests []test
	for _, c := range calls {
		tests = append(tests,
			test{"a server that does not answer/" + c.name, func(f *fixture) {
				s := newSubject(f)
				f.relay(s.session).Hold()
				f.is(c.call(f.briefly(), s), context.DeadlineExceeded)
				f.recovers(s)
			}},
			test{"a connection that is down/" + c.name, func(f *fixture) {
				s := newSubject(f)
				f.sever(s.session)
				err := c.call(f.briefly(), s)
				f.is(err, context.DeadlineExceeded)
				switch c.name {
				case "Release", "Resign": // go on in the background
				case "Write", "Acknowledge": // may not know whether they were sent
					if !errors.Is(err, recipes.ErrUnknownOutcome) {
						f.is(err, recipes.ErrUnavailable)
					}
				default:
					f.is(err, recipes.ErrUnavailable)
				}
				f.isNot(err, recipes.ErrSessionLost)
				f.recovers(s)
			}},
			test{"cancelling/" + c.name, func(f *fixture) {
				s := newSubject(f)
				f.relay(s.session).Hold()
				ctx, cancel := context.WithCancel(f.ctx)
				defer cancel()
				call := startErr(f, func() error { return c.call(ctx, s) })
				cancel()
				_, err := call.result(f)
				f.is(err, context.Canceled)
				f.recovers(s)
			}},
		)
	}
	return tests
}

func newSubject(f *fixture) subject {
	f.Helper()
	s := f.open()
	return subject{
		session:  s,
		lock:     f.lock(s, f.path("a")),
		election: f.election(s, f.path("b")),
		hold:     f.acquire(s, f.path("held")),
		leads:    f.lead(s, f.path("led")),
	}
}

// recovers checks that the session goes on when the fault ends, and that nobody
// is left in the lines in which the calls did not stay.
func (f *fixture) recovers(s subject) {
	f.Helper()
	f.relay(s.session).Restore()
	f.awaitChildren(f.path("a"), 0)
	f.awaitChildren(f.path("b"), 0)
	h, err := s.lock.Acquire(f.ctx)
	f.must(err)
	f.must(h.Release(f.ctx))
	f.must(s.session.Err())
}
