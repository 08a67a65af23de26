package recipestest

import (
	"context"
	"errors"
	"slices"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// call calls a method that takes a context and sends a request. S holds the objects to call.
type call[S any] struct {
	name string
	call func(context.Context, S) error
}

// ending is a way in which a call ends without an answer. Its text states the promise.
type ending string

const (
	unanswered ending = "the deadline ends a call that is not answered"
	severed    ending = "the deadline ends a call while the connection is down"
	cancelled  ending = "cancelling the context ends a call"
	closed     ending = "a call on a closed session is ErrClosed"
)

// endingTests makes one test for each call and each ending.
type endingTests[S any] struct {
	calls    []call[S]
	endings  []ending
	begin    func(*fixture) (recipes.Client, S)
	outcome  func(f *fixture, e ending, name string, err error) // makes further checks of the error; may be nil
	recovers func(*fixture, recipes.Client, S)                  // checks that the session works after the fault
}

func (c endingTests[S]) tests(prefix string) []test {
	var tests []test
	for _, m := range c.calls {
		for _, e := range c.endings {
			tests = append(tests, test{prefix + string(e) + "/" + m.name, func(f *fixture) {
				session, s := c.begin(f)
				err := e.of(f, session, m.name, func(ctx context.Context) error { return m.call(ctx, s) })
				if c.outcome != nil {
					c.outcome(f, e, m.name, err)
				}
				if e == severed {
					f.needsContinuing()
				}
				if e != closed {
					f.relay(session).Restore()
					c.recovers(f, session, s)
					f.must(session.Err())
				}
			}})
		}
	}
	return tests
}

// of makes a call end in this way. It checks the error and returns it.
func (e ending) of(f *fixture, session recipes.Client, name string, call func(context.Context) error) error {
	var err error
	switch e {
	case closed:
		f.must(session.Close(f.ctx))
		err = call(f.ctx)
		f.is(err, recipes.ErrSessionLost, recipes.ErrClosed)
		return err
	case cancelled:
		f.relay(session).Hold()
		ctx, cancel := context.WithCancel(f.ctx)
		defer cancel()
		p := startErr(f, func() error { return call(ctx) })
		cancel()
		err = p.failure(f)
		f.is(err, context.Canceled)
		return err
	case severed:
		f.sever(session)
		if !slices.Contains([]string{"Release", "Resign", "Ack", "AckMany", "Return"}, name) { // calls that delete continue in the background
			return f.unreached(call)
		}
	case unanswered:
		f.relay(session).Hold()
	}
	err = call(f.briefly())
	f.is(err, context.DeadlineExceeded)
	f.isNot(err, recipes.ErrSessionLost)
	return err
}

// unreached makes a call while the connection is down. Its error must say whether the request was
// sent: ErrUnavailable if it was not, ErrUnknownOutcome if it may have been. On a busy machine the
// context may end before the call looks at it, and the error is then the context's alone. So
// unreached tries again with twice the timeout.
func (f *fixture) unreached(call func(context.Context) error) error {
	f.Helper()
	for timeout := brief; ; timeout *= 2 {
		ctx, cancel := context.WithTimeout(f.ctx, timeout)
		err := call(ctx)
		cancel()
		says := errors.Is(err, recipes.ErrUnavailable) || errors.Is(err, recipes.ErrUnknownOutcome)
		if says || !errors.Is(err, context.DeadlineExceeded) || timeout > lifetime {
			f.failIf(!says, "error %v; want ErrUnavailable or ErrUnknownOutcome", err)
			f.is(err, context.DeadlineExceeded)
			f.isNot(err, recipes.ErrSessionLost)
			return err
		}
	}
}

// subject holds the objects that contextTests calls.
type subject struct {
	recipes.Client
	lock     recipes.Lock
	election recipes.Election
	hold     recipes.Hold
	leads    recipes.Leadership
}

// contextTests tests every call of a lock and an election.
func contextTests() []test {
	return endingTests[subject]{
		calls: []call[subject]{
			{"Acquire", func(ctx context.Context, s subject) error { return errOf(s.lock.Acquire(ctx)) }},
			{"TryAcquire", func(ctx context.Context, s subject) error { return errOf(s.lock.TryAcquire(ctx)) }},
			{"Contenders", func(ctx context.Context, s subject) error { return errOf(s.lock.Contenders(ctx)) }},
			{"Recipes.Contenders", func(ctx context.Context, s subject) error { return errOf(s.Contenders(ctx, s.lock.Path())) }},
			{"Campaign", func(ctx context.Context, s subject) error { return errOf(s.election.Campaign(ctx, nil)) }},
			{"Leader", func(ctx context.Context, s subject) error { return errOf(s.election.Leader(ctx)) }},
			{"Acknowledged", func(ctx context.Context, s subject) error { return errOf(s.election.Acknowledged(ctx)) }},
			{"Observe", func(ctx context.Context, s subject) error { return errOf(s.election.Observe(ctx)) }},
			{"Candidates", func(ctx context.Context, s subject) error { return errOf(s.election.Candidates(ctx)) }},
			{"Write", func(ctx context.Context, s subject) error { return s.hold.Write(ctx) }},
			{"Acknowledge", func(ctx context.Context, s subject) error { return s.leads.Acknowledge(ctx, nil) }},
			{"Release", func(ctx context.Context, s subject) error { return s.hold.Release(ctx) }},
			{"Resign", func(ctx context.Context, s subject) error { return s.leads.Resign(ctx) }},
		},
		endings: []ending{unanswered, severed, cancelled, closed},
		begin: func(f *fixture) (recipes.Client, subject) {
			s := f.open()
			return s, subject{
				s, f.lock(s, f.path("a")), f.election(s, f.path("b")), f.acquire(s, f.path("held")), f.lead(s, f.path("led")),
			}
		},
		outcome: func(f *fixture, e ending, name string, err error) {
			if e == severed && name != "Write" && name != "Acknowledge" {
				f.isNot(err, recipes.ErrUnknownOutcome)
			}
		},
		recovers: func(f *fixture, _ recipes.Client, s subject) {
			f.awaitChildren(f.path("a"), 0)
			f.awaitChildren(f.path("b"), 0)
			h := get(f, s.lock.Acquire)
			f.must(h.Release(f.ctx))
		},
	}.tests("")
}

// lineSubject holds the objects that lineContextTests calls.
type lineSubject struct {
	shared    recipes.SharedLock
	semaphore recipes.Semaphore
	priority  recipes.PriorityLock
	atHeld    recipes.SharedLock
	atHanded  recipes.PriorityLock
	held      recipes.SharedHold   // for writing, at the path of atHeld
	handed    recipes.PriorityHold // for writing, at the path of atHanded
	contender string               // a waiter for held
	successor string               // a waiter for handed
}

// lineContextTests tests every call of a shared lock, a semaphore and a priority lock.
func lineContextTests() []test {
	return endingTests[lineSubject]{
		calls: []call[lineSubject]{
			{"shared/AcquireRead", func(ctx context.Context, s lineSubject) error { return errOf(s.shared.AcquireRead(ctx)) }},
			{"shared/AcquireWrite", func(ctx context.Context, s lineSubject) error { return errOf(s.shared.AcquireWrite(ctx)) }},
			{"shared/TryRead", func(ctx context.Context, s lineSubject) error { return errOf(s.shared.TryRead(ctx)) }},
			{"shared/TryWrite", func(ctx context.Context, s lineSubject) error { return errOf(s.shared.TryWrite(ctx)) }},
			{"shared/Contenders", func(ctx context.Context, s lineSubject) error { return errOf(s.shared.Contenders(ctx)) }},
			{"shared/Revoke", func(ctx context.Context, s lineSubject) error { return s.atHeld.Revoke(ctx, s.contender) }},
			{"shared/RevokeForced", func(ctx context.Context, s lineSubject) error { return s.atHeld.RevokeForced(ctx, s.contender) }},
			{"shared/Downgrade", func(ctx context.Context, s lineSubject) error { return s.held.Downgrade(ctx) }},
			{"semaphore/Acquire", func(ctx context.Context, s lineSubject) error { return errOf(s.semaphore.Acquire(ctx)) }},
			{"semaphore/TryAcquire", func(ctx context.Context, s lineSubject) error { return errOf(s.semaphore.TryAcquire(ctx)) }},
			{"semaphore/Contenders", func(ctx context.Context, s lineSubject) error { return errOf(s.semaphore.Contenders(ctx)) }},
			{"priority/AcquireRead", func(ctx context.Context, s lineSubject) error { return errOf(s.priority.AcquireRead(ctx)) }},
			{"priority/AcquireWrite", func(ctx context.Context, s lineSubject) error { return errOf(s.priority.AcquireWrite(ctx)) }},
			{"priority/TryRead", func(ctx context.Context, s lineSubject) error { return errOf(s.priority.TryRead(ctx)) }},
			{"priority/TryWrite", func(ctx context.Context, s lineSubject) error { return errOf(s.priority.TryWrite(ctx)) }},
			{"priority/Contenders", func(ctx context.Context, s lineSubject) error { return errOf(s.priority.Contenders(ctx)) }},
			{"priority/Revoke", func(ctx context.Context, s lineSubject) error { return s.atHanded.Revoke(ctx, s.successor) }},
			{"priority/HandOff", func(ctx context.Context, s lineSubject) error { return s.handed.HandOff(ctx, s.successor) }},
		},
		endings: []ending{unanswered, severed, cancelled, closed},
		begin:   newLineSubject,
		outcome: func(f *fixture, e ending, name string, err error) {
			if e == severed {
				f.isNot(err, recipes.ErrNotHeld, recipes.ErrContended)
			}
			// Repeating any of these calls is harmless, except HandOff.
			if (e == severed || e == unanswered) && name != "priority/HandOff" {
				f.isNot(err, recipes.ErrUnknownOutcome)
			}
		},
		recovers: func(f *fixture, _ recipes.Client, s lineSubject) {
			for _, name := range []string{"a", "b", "c"} {
				f.awaitChildren(f.path(name), 0)
			}
			h := get(f, s.shared.AcquireWrite)
			f.must(h.Release(f.ctx))
			p := get(f, s.priority.AcquireWrite)
			f.must(p.Release(f.ctx))
		},
	}.tests("")
}

func newLineSubject(f *fixture) (recipes.Client, lineSubject) {
	f.Helper()
	s, others := f.open(), f.open()
	priority := func(session recipes.Client, path string, joined func(recipes.Place)) recipes.PriorityLock {
		return must.Get(session.PriorityLock(path, recipes.PriorityLockConfig{Revocable: true, Joined: joined}))(f)
	}
	subject := lineSubject{
		shared:    f.shared(s, f.path("a")),
		semaphore: f.semaphore(s, f.path("b"), 2),
		priority:  priority(s, f.path("c"), nil),
		atHeld:    f.shared(s, f.path("held")),
		atHanded:  priority(s, f.path("handed"), nil),
	}
	subject.held = get(f, subject.atHeld.AcquireWrite)
	subject.handed = get(f, subject.atHanded.AcquireWrite)
	subject.contender = f.sharedWaits(others, f.path("held"), recipes.Writing, allow(patience)).place.Znode
	subject.successor = waits(f, func(joined func(recipes.Place)) func(context.Context) (recipes.PriorityHold, error) {
		return priority(others, f.path("handed"), joined).AcquireWrite
	}).place.Znode
	return s, subject
}
