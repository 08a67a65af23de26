package recipestest

import (
	"context"

	"github.com/zkrecipes/zkrecipes/recipes"
)

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
		l, err := session.PriorityLock(path, recipes.PriorityLockConfig{Revocable: true, Joined: joined})
		f.must(err)
		return l
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
