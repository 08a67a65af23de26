package recipestest

import "github.com/zkrecipes/zkrecipes/recipes"

// releaseCost counts the events and requests that one release costs the sessions of all waiters.
// Without a handoff, the next waiter lists and then reads its own znode.
func releaseCost(f *fixture, k kind) {
	const waiting = 4
	holder := f.open()
	g := k.granted(f, holder, f.path("a"))
	var waiters []*waiter[grant]
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
	if k.hands() {
		lists, others = 0, 0 // nothing is sent between the event and the grant
	}
	if k.strategy == recipes.Herd {
		// All waiters wake and list. The next reads its own znode, the others set their watches.
		events, lists, others = waiting, waiting, waiting
	}
	var sum recipes.Stats
	var gotLists int64
	for i, s := range sessions {
		was := before[s]
		if i == 0 || k.strategy == recipes.Herd {
			f.reach(s, func(c recipes.Stats) bool {
				return c.WatchEvents > was.WatchEvents && (i == 0 || c.ByKind["getData"] > was.ByKind["getData"])
			})
		}
		now := f.stats(s)
		sum.Reads += now.Reads - was.Reads
		sum.Writes += now.Writes - was.Writes
		sum.WatchEvents += now.WatchEvents - was.WatchEvents
		gotLists += listings(now) - listings(was)
	}
	if sum.WatchEvents != events || gotLists != lists || sum.Reads != lists+others || sum.Writes != 0 {
		f.Errorf("one release with %d waiters: %d events, %d listings, %d reads, %d writes; want %d, %d, %d, none",
			waiting, sum.WatchEvents, gotLists, sum.Reads, sum.Writes, events, lists, lists+others)
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
