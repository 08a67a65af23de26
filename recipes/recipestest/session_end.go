package recipestest

import (
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/zkrecipes/zkrecipes/recipes"
)

func endTests() []test {
	return []test{
		{"end/expiry is ErrExpired, and no other session replaces the lost one", expiry},
		{"end/without contact, the session ends by its own deadline, with ErrDeadline", deadline},
		{"end/a suspension past the deadline is ErrDeadline", suspendedForGood},
		{"end/close deletes the session's znodes and ends its grants", closeRemoves},
		{"end/close is safe from several goroutines, and later calls return the same result", closeTogether},
		{"end/a close that is not confirmed is ErrUnknownOutcome, and final", closeUnconfirmed},
		{"end/a close that cannot reach the server is ErrUnknownOutcome, and final", closeSevered},
		{"end/close of a lost session returns", closeLost},
		{"end/the server deletes the znodes of a session whose close was not confirmed", closeUnconfirmedRemoves},
	}
}

// over waits until the session is lost. The reason must be this one, and no other.
func (f *fixture) over(s recipes.Client, reason error) {
	f.Helper()
	f.await(s.Done(), "the loss of the session")
	f.is(s.Err(), recipes.ErrSessionLost, reason)
	for _, other := range []error{recipes.ErrExpired, recipes.ErrDeadline, recipes.ErrClosed, recipes.ErrPluginLost, recipes.ErrAuthFailed} {
		if other != reason {
			f.isNot(s.Err(), other)
		}
	}
	if s.State() != recipes.Lost {
		f.Errorf("State = %v; want lost", s.State())
	}
	f.is(errOf(f.lock(s, f.path("over")).TryAcquire(f.ctx)), recipes.ErrSessionLost, reason)
}

func expiry(f *fixture) {
	s := f.open()
	id, events := s.ID(), s.Events(f.ctx)
	f.expire(s)
	f.over(s, recipes.ErrExpired)
	for e := range events {
		if e.State == recipes.Lost {
			f.is(e.Reason, recipes.ErrSessionLost, recipes.ErrExpired)
		}
	}
	// A new session reaches the server, and the lost one stays lost.
	f.acquire(f.open(), f.path("a"))
	f.over(s, recipes.ErrExpired)
	if s.ID() != id {
		f.Errorf("session %#x; want %#x", s.ID(), id)
	}
}

func deadline(f *fixture) {
	s := f.openShort(func(s recipes.Client) error {
		_, err := f.lock(s, f.path("a")).Acquire(f.ctx)
		return err
	})
	begun := time.Now()
	f.relay(s).Hold()
	f.await(s.Done(), "the loss of the session")
	if took := time.Since(begun); took > s.Timeout()+lifetime { // a busy machine can be late
		f.Errorf("lost after %v; the timeout is %v", took, s.Timeout())
	}
	f.over(s, recipes.ErrDeadline)
	f.relay(s).Restore()
	f.over(s, recipes.ErrDeadline)
}

func suspendedForGood(f *fixture) {
	s := f.open(withTimeout(shortLifetime))
	f.sever(s)
	f.over(s, recipes.ErrDeadline)
}

func closeRemoves(f *fixture) {
	s := f.open()
	h, l := f.acquire(s, f.path("a")), f.lead(s, f.path("b"))
	f.must(l.Acknowledge(f.ctx, nil))
	w := lockKind.waits(f, s, f.path("a"))
	f.must(s.Close(f.ctx))
	for _, path := range []string{f.path("a"), f.path("b")} {
		if names := f.children(path); len(names) != 0 {
			f.Errorf("left behind in %s: %v", path, names)
		}
	}
	f.is(w.failure(f), recipes.ErrClosed)
	f.lost(h, recipes.ErrClosed)
	f.lost(l, recipes.ErrClosed)
	f.over(s, recipes.ErrClosed)
}

func closeTogether(f *fixture) {
	s := f.open()
	var together errgroup.Group
	for range 5 {
		together.Go(func() error { return s.Close(f.ctx) })
	}
	f.must(together.Wait())
	f.must(s.Close(f.ctx))
	f.over(s, recipes.ErrClosed)
}

func closeUnconfirmed(f *fixture) {
	s := f.open(withTimeout(time.Minute))
	h := f.acquire(s, f.path("a"))
	f.relay(s).Hold()
	begun := time.Now()
	err := s.Close(f.briefly())
	f.is(err, recipes.ErrUnknownOutcome)
	if took := time.Since(begun); took >= s.Timeout()/2 {
		f.Errorf("it took %v", took)
	}
	f.over(s, recipes.ErrClosed)
	f.lost(h, recipes.ErrClosed)
	f.is(s.Close(f.ctx), recipes.ErrUnknownOutcome)
}

func closeSevered(f *fixture) {
	s := f.open()
	f.sever(s)
	f.is(s.Close(f.briefly()), recipes.ErrUnknownOutcome)
	f.over(s, recipes.ErrClosed)
	f.is(s.Close(f.ctx), recipes.ErrUnknownOutcome)
}

func closeLost(f *fixture) {
	s := f.open()
	f.expire(s)
	_ = s.Close(f.ctx) // the contract promises only that it returns
	f.must(f.ctx.Err())
	f.over(s, recipes.ErrExpired)
}

func closeUnconfirmedRemoves(f *fixture) {
	var h recipes.Hold
	s := f.openShort(func(s recipes.Client) (err error) {
		h, err = f.lock(s, f.path("a")).Acquire(f.ctx)
		return err
	})
	f.sever(s)
	_ = s.Close(f.ended())
	f.awaitNode(h.Znode(), false)
}
