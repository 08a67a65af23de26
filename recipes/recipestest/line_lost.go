package recipestest

import (
	"context"
	"sync"
	"time"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// lossTests tests the loss of a grant.
func lossTests() []kindTest {
	return []kindTest{
		{"closing the session loses the grant, and the next waiter is granted", func(f *fixture, k kind) {
			s := f.open()
			g := k.granted(f, s, f.path("a"))
			silent := k.granted(f, s, f.path("b")) // a grant whose Done is first called after the loss
			f.held(g)
			next := k.waits(f, f.open(), f.path("a"))
			f.must(s.Close(f.ctx))
			f.lost(g, recipes.ErrSessionLost, recipes.ErrClosed)
			f.forbidden(g, recipes.ErrSessionLost, recipes.ErrClosed)
			f.is(silent.Err(), recipes.ErrNotHeld, recipes.ErrClosed)
			next.must(f)
			f.failIf(f.exists(g.Znode()) || f.exists(silent.Znode()), "a znode exists after the close of its session")
		}},
		{"without contact, the grant is lost at the session's deadline", func(f *fixture, k kind) {
			var g grant
			s := f.openShort(func(s recipes.Client) (err error) {
				g, err = k.at(f, s, f.path("a")).Enter(f.ctx)
				return err
			})
			f.relay(s).Hold()
			next := k.waits(f, f.open(), f.path("a"))
			until := g.ValidUntil() // later answers are held back
			f.failIf(until.After(time.Now().Add(s.Timeout())), "valid for %v, longer than the timeout", time.Until(until))
			f.lost(g, recipes.ErrSessionLost, recipes.ErrDeadline)
			next.must(f)
			f.failIf(time.Now().Before(until), "another is granted %v before the hold is invalid", time.Until(until))
			f.failIf(!g.ValidUntil().IsZero(), "a lost grant is valid until %v", g.ValidUntil())
		}},
		{"OnDanger warns when little is left of the proof", func(f *fixture, k kind) {
			s := f.open(withTimeout(time.Minute))
			g := k.granted(f, s, f.path("a"))
			warned := make(chan struct{})
			// A proof is never longer than the timeout.
			defer recipes.OnDanger(g, s.Timeout(), sync.OnceFunc(func() { close(warned) }))()
			f.await(warned, "the warning")
		}},
		{"a context of WithHold ends with the grant, for its reason", func(f *fixture, k kind) {
			g := k.granted(f, f.open(), f.path("a"))
			f.failIf(!g.ValidUntil().After(time.Now()), "a new grant is invalid since %v", g.ValidUntil())
			held, stop := recipes.WithHold(f.ctx, g)
			defer stop()
			f.must(held.Err())
			f.must(g.Release(f.ctx))
			f.await(held.Done(), "the end of the context")
			f.is(context.Cause(held), recipes.ErrReleased)
			f.must(f.ctx.Err())
			late, stop := recipes.WithHold(f.ctx, g)
			defer stop()
			f.is(context.Cause(late), recipes.ErrReleased)
		}},
		{"deletion by another client loses the grant", func(f *fixture, k kind) {
			s := f.open()
			g := k.granted(f, s, f.path("a"))
			lost := g.Done()
			next := k.waits(f, f.open(), f.path("a"))
			f.remove(g.Znode())
			f.await(lost, "the loss of the grant")
			f.lost(g, recipes.ErrRemoved)
			f.isNot(g.Err(), recipes.ErrSessionLost)
			next.must(f)
			f.must(s.Err())
			k.granted(f, s, f.path("b"))
		}},
		{"deletion during a lost connection loses the grant", func(f *fixture, k kind) {
			s := f.open()
			g := k.granted(f, s, f.path("a"))
			f.held(g)
			f.sever(s)
			f.remove(g.Znode())
			f.held(g) // the session cannot notice the deletion yet
			f.restore(s)
			f.lost(g, recipes.ErrRemoved)
		}},
		{"Write notices a deletion without a watch, and writes nothing", func(f *fixture, k kind) {
			g := k.granted(f, f.open(), f.path("a"))
			f.remove(g.Znode())
			err := g.Err()
			f.failIf(err != nil, "Err = %v before any request", err)
			f.forbidden(g, recipes.ErrRemoved)
			f.lost(g, recipes.ErrRemoved)
		}},
		{"a suspended session keeps its grant", func(f *fixture, k kind) {
			s := f.open()
			g := k.granted(f, s, f.path("a"))
			f.held(g)
			f.sever(s)
			f.held(g)
			f.reconnect(s)
			f.must(g.Write(f.ctx))
			f.held(g)
		}},
		{"a call of Done after the loss returns a closed channel, and Err keeps its reason", func(f *fixture, k kind) {
			s := f.open()
			removed, released, closed := k.granted(f, s, f.path("a")), k.granted(f, s, f.path("b")), k.granted(f, s, f.path("c"))
			f.remove(removed.Znode())
			f.lost(removed, recipes.ErrRemoved)
			f.must(released.Release(f.ctx))
			f.lost(released, recipes.ErrReleased)
			f.must(s.Close(f.ctx))
			f.lost(closed, recipes.ErrClosed)
			// The first reason of the loss stays.
			f.lost(removed, recipes.ErrRemoved)
			f.lost(released, recipes.ErrReleased)
		}},
		{"expiry of the session loses the grant, and the next waiter is granted", nextAfterExpiry},
	}
}

func nextAfterExpiry(f *fixture, k kind) {
	s := f.open()
	g := k.granted(f, s, f.path("a"))
	f.held(g)
	next := k.waits(f, f.open(), f.path("a"))
	f.expire(s)
	f.lost(g, recipes.ErrSessionLost, recipes.ErrExpired)
	f.forbidden(g, recipes.ErrSessionLost, recipes.ErrExpired)
	got := next.must(f)
	f.failIf(got.Token() <= g.Token(), "token %d after %d", got.Token(), g.Token())
}

// releaseCost counts the events and requests that one release costs the sessions of all waiters.
// Without a handoff, the next waiter lists and then reads its own znode.
func releaseCost(f *fixture, k kind) {
	const waiting = 4
	holder := f.open()
	g := k.granted(f, holder, f.path("a"))
	var waiters []*waitingCall[grant]
	var sessions []recipes.Client
	for range waiting {
		s := f.open()
		sessions = append(sessions, s)
		waiters = append(waiters, k.waits(f, s, f.path("a")))
		k.watches(f, s, f.path("a"))
	}
	before := make(map[recipes.Client]recipes.Stats)
	for _, s := range sessions {
		before[s] = f.stats(s)
	}
	f.must(g.Release(f.ctx))
	waiters[0].must(f)
	events, lists, others := int64(1), int64(1), int64(1)
	if k.hands(f) {
		lists, others = 0, 0 // nothing is sent between the event and the grant
	}
	if k.strategy == recipes.Herd {
		// All waiters wake and list. The next reads its own znode, the others set their watches.
		events, lists, others = waiting, waiting, waiting
	}
	var sum recipes.Stats
	var gotLists, confirms int64
	for i, s := range sessions {
		was := before[s]
		if i == 0 || k.strategy == recipes.Herd {
			f.reach(s, func(c recipes.Stats) bool {
				return c.WatchEvents > was.WatchEvents && (i == 0 || c.ByKind["getData"] > was.ByKind["getData"])
			})
		}
		now := f.stats(s)
		// After a second of holding, the next one confirms that by exists, and may list.
		confirms += now.ByKind["exists"] - was.ByKind["exists"]
		sum.Reads += now.Reads - was.Reads
		sum.Writes += now.Writes - was.Writes
		sum.WatchEvents += now.WatchEvents - was.WatchEvents
		gotLists += listings(now) - listings(was)
	}
	sum.Reads -= confirms + gotLists
	if sum.WatchEvents != events || gotLists < lists || gotLists > lists+confirms || sum.Reads != others || sum.Writes != 0 {
		f.Errorf("one release with %d waiters: %d events, %d listings, %d other reads, %d writes; want %d, %d, %d, none",
			waiting, sum.WatchEvents, gotLists, sum.Reads, sum.Writes, events, lists, others)
	}
}

// watches waits until the server has the watch of the session's only waiter. The request that
// sets it was sent; once a later request is answered, the server has processed it.
func (k kind) watches(f *fixture, s recipes.Client, path string) {
	f.Helper()
	f.reach(s, func(c recipes.Stats) bool { return c.ByKind["getData"] >= 1 })
	get(f, k.at(f, s, path).Contenders)
}

func listings(c recipes.Stats) int64 { return c.ByKind["getChildren2"] + c.ByKind["getChildren"] }

func (f *fixture) stats(s recipes.Session) recipes.Stats {
	f.Helper()
	return get(f, s.Stats)
}

// sendsNothing checks that a call on the session sends no request.
func (f *fixture) sendsNothing(s recipes.Session, call func()) {
	f.Helper()
	before := f.stats(s)
	f.writesNothing(s, call)
	reads := f.stats(s).Reads - before.Reads
	f.failIf(reads != 0, "%d reads were sent", reads)
}

// writesNothing checks that a call on the session sends no write.
func (f *fixture) writesNothing(s recipes.Session, call func()) {
	f.Helper()
	before := f.stats(s)
	call()
	writes := f.stats(s).Writes - before.Writes
	f.failIf(writes != 0, "%d writes were sent", writes)
}

// reach reads a session's statistics until they satisfy the condition. Nothing else shows that
// another goroutine has sent its request.
func (f *fixture) reach(s recipes.Session, satisfied func(recipes.Stats) bool) {
	f.Helper()
	for {
		c := f.stats(s)
		if satisfied(c) {
			return
		}
		// A round trip slows down this loop.
		if _, _, err := f.outside.Exists("/"); err != nil || f.ctx.Err() != nil {
			f.Fatalf("the statistics stay at %+v (%v)", c, err)
		}
	}
}
