package recipestest

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/zkrecipes/zkrecipes/recipes"
)

func endTests() []test {
	return []test{
		{"end/expiry is ErrExpired, and no other session replaces the lost one", func(f *fixture) {
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
			f.failIf(s.ID() != id, "session %#x; want %#x", s.ID(), id)
		}},
		{"end/without contact, the session ends by its own deadline, with ErrDeadline", func(f *fixture) {
			s := f.openShort(func(s recipes.Client) error {
				_, err := f.lock(s, f.path("a")).Acquire(f.ctx)
				return err
			})
			begun := time.Now()
			f.relay(s).Hold()
			f.await(s.Done(), "the loss of the session")
			if took := time.Since(begun); took > s.Timeout()+lifetime { // a busy machine can delay this
				f.Errorf("lost after %v; the timeout is %v", took, s.Timeout())
			}
			f.over(s, recipes.ErrDeadline)
			f.relay(s).Restore()
			f.over(s, recipes.ErrDeadline)
		}},
		{"end/a suspension past the deadline is ErrDeadline", func(f *fixture) {
			s := f.openShort(func(s recipes.Client) error { f.relay(s).Refuse(); return nil })
			f.over(s, recipes.ErrDeadline)
		}},
		{"end/close deletes the session's znodes and ends its grants", func(f *fixture) {
			s := f.open()
			h, l := f.acquire(s, f.path("a")), f.lead(s, f.path("b"))
			f.must(l.Acknowledge(f.ctx, nil))
			w := lockKind.waits(f, s, f.path("a"))
			f.must(s.Close(f.ctx))
			for _, path := range []string{f.path("a"), f.path("b")} {
				names := f.children(path)
				f.failIf(len(names) != 0, "left behind in %s: %v", path, names)
			}
			f.is(w.failure(f), recipes.ErrClosed)
			f.lost(h, recipes.ErrClosed)
			f.lost(l, recipes.ErrClosed)
			f.over(s, recipes.ErrClosed)
		}},
		{"end/close is safe from several goroutines, and later calls return the same result", func(f *fixture) {
			s := f.open()
			var together errgroup.Group
			for range 5 {
				together.Go(func() error { return s.Close(f.ctx) })
			}
			f.must(together.Wait())
			f.must(s.Close(f.ctx))
			f.over(s, recipes.ErrClosed)
		}},
		{"end/a close that is not confirmed is ErrUnknownOutcome, and final", func(f *fixture) {
			s := f.open(withTimeout(time.Minute))
			h := f.acquire(s, f.path("a"))
			f.relay(s).Hold()
			begun := time.Now()
			f.is(s.Close(f.briefly()), recipes.ErrUnknownOutcome)
			took := time.Since(begun)
			f.failIf(took >= s.Timeout()/2, "it took %v", took)
			f.over(s, recipes.ErrClosed)
			f.lost(h, recipes.ErrClosed)
			f.is(s.Close(f.ctx), recipes.ErrUnknownOutcome)
		}},
		{"end/a close that cannot reach the server is ErrUnknownOutcome, and final", func(f *fixture) {
			s := f.open()
			f.sever(s)
			f.is(s.Close(f.briefly()), recipes.ErrUnknownOutcome)
			f.over(s, recipes.ErrClosed)
			f.is(s.Close(f.ctx), recipes.ErrUnknownOutcome)
		}},
		{"end/close of a lost session returns", func(f *fixture) {
			s := f.open()
			f.expire(s)
			_ = s.Close(f.ctx) // the contract promises only that it returns
			f.must(f.ctx.Err())
			f.over(s, recipes.ErrExpired)
		}},
		{"end/the server deletes the znodes of a session whose close was not confirmed", func(f *fixture) {
			var h recipes.Hold
			s := f.openShort(func(s recipes.Client) (err error) {
				h, err = f.lock(s, f.path("a")).Acquire(f.ctx)
				return err
			})
			f.relay(s).Refuse() // on a busy machine a short session may be lost before it is seen suspended
			_ = s.Close(f.ended())
			f.awaitNode(h.Znode(), false)
		}},
	}
}

// over waits until the session is lost. The reason must be this one, and no other.
func (f *fixture) over(s recipes.Client, reason error) {
	f.Helper()
	f.await(s.Done(), "the loss of the session")
	f.is(s.Err(), recipes.ErrSessionLost, reason)
	for _, other := range []error{recipes.ErrExpired, recipes.ErrDeadline, recipes.ErrClosed, recipes.ErrPluginLost, recipes.ErrAuthFailed, recipes.ErrNotContinued} {
		if other != reason {
			f.isNot(s.Err(), other)
		}
	}
	f.failIf(s.State() != recipes.Lost, "State = %v; want lost", s.State())
	f.is(errOf(f.lock(s, f.path("over")).TryAcquire(f.ctx)), recipes.ErrSessionLost, reason)
}

func eventTests() []test {
	return []test{
		{"events/the first one is the current state", func(f *fixture) {
			s := f.open()
			e := receive(f, s.Events(f.ctx), "the first event")
			f.failIf(e.State != recipes.Connected || e.Reason != nil, "%+v; want connected", e)
			f.sever(s)
			if e := receive(f, s.Events(f.ctx), "the first event"); e.State != recipes.Suspended || e.Reason != nil {
				f.Errorf("%+v; want suspended", e)
			}
		}},
		{"events/suspension and reconnect are reported, and the session continues", func(f *fixture) {
			s := f.open()
			id := s.ID()
			one, two := s.Events(f.ctx), s.Events(f.ctx)
			want := func(state recipes.State) {
				f.Helper()
				for _, events := range []<-chan recipes.Event{one, two} {
					if e := receive(f, events, "an event"); e.State != state {
						f.Fatalf("%+v; want %v", e, state)
					}
				}
				got := s.State()
				f.failIf(got != state, "State = %v; want %v", got, state)
			}
			want(recipes.Connected)
			for range 2 {
				f.relay(s).Refuse()
				want(recipes.Suspended)
				f.restore(s)
				want(recipes.Connected)
			}
			f.failIf(s.ID() != id || s.Err() != nil, "session %#x, %v; want %#x", s.ID(), s.Err(), id)
		}},
		{"events/a slow reader does not miss the loss", func(f *fixture) {
			s := f.open()
			unread, first := s.Events(f.ctx), s.Events(f.ctx)
			receive(f, first, "the first event")
			for range 3 {
				f.sever(s)
				f.reconnect(s)
			}
			f.must(s.Close(f.ctx))
			for _, events := range []<-chan recipes.Event{unread, first} {
				var last recipes.Event
				for {
					e, ok := <-events
					if !ok {
						break
					}
					f.failIf(last.State == recipes.Lost, "%+v after the loss", e)
					last = e
				}
				f.failIf(last.State != recipes.Lost, "the last event is %+v; want the loss", last)
				f.is(last.Reason, recipes.ErrSessionLost, recipes.ErrClosed)
			}
		}},
		{"events/the channel is closed when the context ends", func(f *fixture) {
			s := f.open()
			ctx, cancel := context.WithCancel(f.ctx)
			events := s.Events(ctx)
			other := s.Events(f.ctx)
			cancel()
			drained(f, events, "the cancelled channel")
			receive(f, other, "an event of the other channel")
			drained(f, s.Events(f.ended()), "the channel of an ended context")
		}},
		{"events/after the loss only the loss is reported", func(f *fixture) {
			s := f.open()
			f.must(s.Close(f.ctx))
			events := s.Events(f.ctx)
			if e := receive(f, events, "the loss"); e.State != recipes.Lost {
				f.Errorf("%+v; want the loss", e)
			} else {
				f.is(e.Reason, recipes.ErrClosed)
			}
			drained(f, events, "the channel of a lost session")
		}},
	}
}
