package recipestest

import (
	"context"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// lineSubject is what the calls of lineContextTests are made on.
type lineSubject struct {
	session    recipes.Client
	shared     recipes.SharedLock
	semaphore  recipes.Semaphore
	priority   recipes.PriorityLock
	held       recipes.SharedHold   // for writing, at another path
	handed     recipes.PriorityHold // for writing, at a third path
	contender  string               // of the path of held
	successor  string               // of the path of handed
	atHeld     recipes.SharedLock
	atPriority recipes.PriorityLock
}

// lineCalls are all calls of the shared lock, the semaphore and the priority
// lock that take a context and talk to the server.
var lineCalls = []struct {
	name string
	call func(context.Context, lineSubject) error
}{
	{"shared/AcquireRead", func(ctx context.Context, s lineSubject) error { _, err := s.shared.AcquireRead(ctx); return err }},
	{"shared/AcquireWrite", func(ctx context.Context, s lineSubject) error { _, err := s.shared.AcquireWrite(ctx); return err }},
	{"shared/TryRead", func(ctx context.Context, s lineSubject) error { _, err := s.shared.TryRead(ctx); return err }},
	{"shared/TryWrite", func(ctx context.Context, s lineSubject) error { _, err := s.shared.TryWrite(ctx); return err }},
	{"shared/Contenders", func(ctx context.Context, s lineSubject) error { _, err := s.shared.Contenders(ctx); return err }},
	{"shared/Revoke", func(ctx context.Context, s lineSubject) error { return s.atHeld.Revoke(ctx, s.contender) }},
	{"shared/RevokeForced", func(ctx context.Context, s lineSubject) error { return s.atHeld.RevokeForced(ctx, s.contender) }},
	{"shared/Downgrade", func(ctx context.Context, s lineSubject) error { return s.held.Downgrade(ctx) }},
	{"semaphore/Acquire", func(ctx context.Context, s lineSubject) error { _, err := s.semaphore.Acquire(ctx); return err }},
	{"semaphore/TryAcquire", func(ctx context.Context, s lineSubject) error { _, err := s.semaphore.TryAcquire(ctx); return err }},
	{"semaphore/Contenders", func(ctx context.Context, s lineSubject) error { _, err := s.semaphore.Contenders(ctx); return err }},
	{"priority/AcquireRead", func(ctx context.Context, s lineSubject) error { _, err := s.priority.AcquireRead(ctx); return err }},
	{"priority/AcquireWrite", func(ctx context.Context, s lineSubject) error { _, err := s.priority.AcquireWrite(ctx); return err }},
	{"priority/TryRead", func(ctx context.Context, s lineSubject) error { _, err := s.priority.TryRead(ctx); return err }},
	{"priority/TryWrite", func(ctx context.Context, s lineSubject) error { _, err := s.priority.TryWrite(ctx); return err }},
	{"priority/Contenders", func(ctx context.Context, s lineSubject) error { _, err := s.priority.Contenders(ctx); return err }},
	{"priority/Revoke", func(ctx context.Context, s lineSubject) error { return s.atPriority.Revoke(ctx, s.successor) }},
	{"priority/HandOff", func(ctx context.Context, s lineSubject) error { return s.handed.HandOff(ctx, s.successor) }},
}

// lineContextTests are about contexts that end, for every call alike.
func lineContextTests() []test {
	var tests []test
	for _, c := range lineCalls {
		tests = append(tests,
			test{"a server that does not answer/" + c.name, func(f *fixture) {
				s := newLineSubject(f)
				f.relay(s.session).Hold()
				err := c.call(f.briefly(), s)
				f.is(err, context.DeadlineExceeded)
				if c.name != "priority/HandOff" { // all others can be called again
					f.isNot(err, recipes.ErrUnknownOutcome)
				}
				f.lineRecovers(s)
			}},
			test{"a connection that is down/" + c.name, func(f *fixture) {
				s := newLineSubject(f)
				f.sever(s.session)
				err := c.call(f.briefly(), s)
				f.is(err, context.DeadlineExceeded)
				f.isNot(err, recipes.ErrSessionLost, recipes.ErrNotHeld, recipes.ErrContended)
				if c.name != "priority/HandOff" { // all others can be called again
					f.isNot(err, recipes.ErrUnknownOutcome)
				}
				f.lineRecovers(s)
			}},
			test{"cancelling/" + c.name, func(f *fixture) {
				s := newLineSubject(f)
				f.relay(s.session).Hold()
				ctx, cancel := context.WithCancel(f.ctx)
				defer cancel()
				call := startErr(f, func() error { return c.call(ctx, s) })
				cancel()
				_, err := call.result(f)
				f.is(err, context.Canceled)
				f.lineRecovers(s)
			}},
			test{"a session that is lost/" + c.name, func(f *fixture) {
				s := newLineSubject(f)
				f.must(s.session.Close(f.ctx))
				f.is(c.call(f.ctx, s), recipes.ErrSessionLost, recipes.ErrClosed)
			}},
		)
	}
	return tests
}

func newLineSubject(f *fixture) lineSubject {
	f.Helper()
	s, others := f.open(), f.open()
	at := func(session recipes.Client, path string) recipes.PriorityLock {
		l, err := session.PriorityLock(path, recipes.PriorityLockConfig{Revocable: true})
		f.must(err)
		return l
	}
	subject := lineSubject{
		session:    s,
		shared:     f.shared(s, f.path("a")),
		semaphore:  f.semaphore(s, f.path("b"), 2),
		priority:   at(s, f.path("c")),
		atHeld:     f.shared(s, f.path("held")),
		atPriority: at(s, f.path("handed")),
	}
	var err error
	subject.held, err = subject.atHeld.AcquireWrite(f.ctx)
	f.must(err)
	subject.handed, err = subject.atPriority.AcquireWrite(f.ctx)
	f.must(err)

	joined := make(chan recipes.Place, 2)
	tell := func(p recipes.Place) { joined <- p }
	waiter, err := others.SharedLock(f.path("held"), recipes.SharedLockConfig{Revocable: true, Grace: patience, Joined: tell})
	f.must(err)
	successor, err := others.PriorityLock(f.path("handed"), recipes.PriorityLockConfig{Revocable: true, Joined: tell})
	f.must(err)
	ctx, cancel := context.WithCancel(f.ctx)
	start(f, func() (recipes.SharedHold, error) { return waiter.AcquireWrite(ctx) })
	subject.contender = receive(f, joined, "joining the line").Znode
	start(f, func() (recipes.PriorityHold, error) { return successor.AcquireWrite(ctx) })
	subject.successor = receive(f, joined, "joining the line").Znode
	f.Cleanup(cancel)
	return subject
}

// lineRecovers checks that the session goes on when the fault ends, and that
// nobody is left in the lines in which the calls did not stay.
func (f *fixture) lineRecovers(s lineSubject) {
	f.Helper()
	f.relay(s.session).Restore()
	for _, name := range []string{"a", "b", "c"} {
		f.awaitChildren(f.path(name), 0)
	}
	h, err := s.shared.AcquireWrite(f.ctx)
	f.must(err)
	f.must(h.Release(f.ctx))
	p, err := s.priority.AcquireWrite(f.ctx)
	f.must(err)
	f.must(p.Release(f.ctx))
	f.must(s.session.Err())
}
