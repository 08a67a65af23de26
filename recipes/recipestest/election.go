package recipestest

import (
	"context"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/recipes"
)

func observeTests() []test {
	return []test{
		{"observe/leaders, acknowledgements and None arrive in order", func(f *fixture) {
			leaders := f.observe(f.open(), f.path("a"))
			f.sees(leaders, "", false)
			one := f.lead(f.open(), f.path("a"))
			f.sees(leaders, one.Znode(), false)
			f.must(one.Acknowledge(f.ctx, nil))
			f.sees(leaders, one.Znode(), true)
			next := electionKind.waits(f, f.open(), f.path("a"))
			f.remove(one.Znode())
			two := next.must(f).Grant.(recipes.Leadership)
			f.sees(leaders, two.Znode(), false)
			f.must(two.Resign(f.ctx))
			f.sees(leaders, "", false)
			three := f.lead(f.open(), f.path("a"))
			f.sees(leaders, three.Znode(), false)
		}},
		{"observe/the first value is the current leader", func(f *fixture) {
			l := f.lead(f.open(), f.path("a"))
			f.must(l.Acknowledge(f.ctx, []byte("done")))
			got := receive(f, f.observe(f.open(), f.path("a")), "the present leader")
			if got.Znode != l.Znode() || got.Token != l.Token() || string(got.Data) != "proposal" ||
				!got.Acknowledged || string(got.Acknowledgement) != "done" {
				f.Errorf("observed %+v; want %s", got, l.Znode())
			}
		}},
		{"observe/candidates behind the leader cause no values and no events", func(f *fixture) {
			s := f.open()
			l := f.lead(f.open(), f.path("a"))
			// The parent of acknowledgements exists. Otherwise its creation can send an event too.
			must.Get(f.outside.Create(f.path("a", "acks"), nil, 0, zk.WorldACL(zk.PermAll)))(f)
			leaders := f.observe(s, f.path("a"))
			f.sees(leaders, l.Znode(), false)
			events := f.stats(s).WatchEvents
			w := electionKind.waits(f, f.open(), f.path("a"))
			w.cancel()
			f.awaitNode(w.place.Znode, false)
			f.must(l.Acknowledge(f.ctx, nil))
			f.sees(leaders, l.Znode(), true)
			got := f.stats(s).WatchEvents - events
			f.failIf(got != 1, "%d watch events; want only the one of the acknowledgement", got)
		}},
		{"observe/an acknowledgement that is replaced or deleted is reported", func(f *fixture) {
			l := f.lead(f.open(), f.path("a"))
			leaders := f.observe(f.open(), f.path("a"))
			f.sees(leaders, l.Znode(), false)
			for _, data := range []string{"first", "second"} {
				f.must(l.Acknowledge(f.ctx, []byte(data)))
				got := receive(f, leaders, "the acknowledgement")
				if !got.Acknowledged || string(got.Acknowledgement) != data {
					f.Fatalf("observed %+v; want the acknowledgement %q", got, data)
				}
			}
			f.remove(acknowledgement(l))
			f.sees(leaders, l.Znode(), false)
		}},
		{"observe/SessionID distinguishes a candidate from the one before its restart", func(f *fixture) {
			crashed := f.open()
			old := f.lead(crashed, f.path("a"))
			restarted := f.open()
			leaders := f.observe(restarted, f.path("a"))
			got := receive(f, leaders, "the present leader")
			if string(got.Data) != "proposal" || got.SessionID != crashed.ID() || got.SessionID == restarted.ID() {
				f.Errorf("observed %+v; want the candidate of session %#x", got, crashed.ID())
			}
			campaign := electionKind.waits(f, restarted, f.path("a"))
			f.expire(crashed)
			f.lost(old, recipes.ErrExpired)
			now := campaign.must(f)
			got = receive(f, leaders, "the next leader")
			if got.SessionID != restarted.ID() || got.Znode != now.Znode() {
				f.Errorf("observed %+v; want the one of session %#x", got, restarted.ID())
			}
		}},
		{"observe/a slow reader gets the latest leader", func(f *fixture) {
			leaders := f.observe(f.open(), f.path("a"))
			s := f.open()
			for range 5 {
				f.must(f.lead(s, f.path("a")).Resign(f.ctx))
			}
			last := f.lead(s, f.path("a"))
			for receive(f, leaders, "the latest leader").Znode != last.Znode() {
			}
		}},
		{"observe/the channel continues when the path is created and deleted", func(f *fixture) {
			s := f.open()
			leaders := f.observe(s, f.path("a"))
			f.sees(leaders, "", false)
			for range 2 {
				f.create(f.path("a"), "") // without candidates it changes nothing
				l := f.lead(f.open(), f.path("a"))
				f.sees(leaders, l.Znode(), false)
				f.must(l.Resign(f.ctx))
				f.sees(leaders, "", false)
				f.remove(f.path("a"))
			}
		}},
		{"observe/a change during a lost connection is not missed", func(f *fixture) {
			s := f.open()
			one := f.lead(f.open(), f.path("a"))
			leaders := f.observe(s, f.path("a"))
			f.sees(leaders, one.Znode(), false)
			f.sever(s)
			f.must(one.Resign(f.ctx))
			two := f.lead(f.open(), f.path("a"))
			f.restore(s)
			f.sees(leaders, two.Znode(), false)
		}},
		{"observe/the channel is closed when the context ends", func(f *fixture) {
			s := f.open()
			ctx, cancel := context.WithCancel(f.ctx)
			defer cancel()
			leaders := must.Get(f.election(s, f.path("a")).Observe(ctx))(f)
			unread := must.Get(f.election(s, f.path("a")).Observe(ctx))(f)
			f.sees(leaders, "", false)
			cancel()
			drained(f, leaders, "the cancelled channel")
			drained(f, unread, "the cancelled channel")
		}},
		{"observe/the channel is closed when the session is lost", func(f *fixture) {
			closed, expired := f.open(), f.open()
			one, two := f.observe(closed, f.path("a")), f.observe(expired, f.path("a"))
			f.must(closed.Close(f.ctx))
			f.expire(expired)
			drained(f, one, "the channel of a closed session")
			drained(f, two, "the channel of an expired session")
			f.is(closed.Err(), recipes.ErrClosed)
			f.is(expired.Err(), recipes.ErrExpired)
		}},
	}
}

func (f *fixture) observe(s recipes.Recipes, path string) <-chan recipes.Leader {
	f.Helper()
	return get(f, f.election(s, path).Observe)
}

// observes waits until it observes a leader that satisfies the condition.
func (f *fixture) observes(s recipes.Recipes, path string, satisfied func(recipes.Leader) bool) {
	f.Helper()
	ctx, cancel := context.WithCancel(f.ctx)
	defer cancel()
	leaders := must.Get(f.election(s, path).Observe(ctx))(f)
	for !satisfied(receive(f, leaders, "that leader")) {
	}
}

// sees checks the next observed leader.
func (f *fixture) sees(leaders <-chan recipes.Leader, znode string, acknowledged bool) {
	f.Helper()
	got := receive(f, leaders, "the next leader")
	if got.Znode != znode || got.Acknowledged != acknowledged || got.None() != (znode == "") {
		f.Fatalf("observed %+v; want %q, acknowledged %v", got, znode, acknowledged)
	}
}

// electionTests tests what an election promises beyond placeTests and lineTests.
func electionTests() []test {
	return slices.Concat([]test{
		{"leader/the first candidate leads, with its proposal", func(f *fixture) {
			s := f.open()
			l := must.Get(f.election(s, f.path("a")).Campaign(f.ctx, []byte("my address")))(f)
			electionKind.waits(f, f.open(), f.path("a"))
			got := get(f, f.election(f.open(), f.path("a")).Leader)
			if got.Znode != l.Znode() || got.Token != l.Token() || got.SessionID != s.ID() || string(got.Data) != "my address" {
				f.Errorf("leader %+v; want %s with token %d", got, l.Znode(), l.Token())
			}
			if got.None() || got.Acknowledged || len(got.Acknowledgement) != 0 {
				f.Errorf("leader %+v; want it not to have acknowledged", got)
			}
		}},
		{"leader/a call without a leader is ErrNoLeader", func(f *fixture) {
			e := f.election(f.open(), f.path("a"))
			f.is(errOf(e.Leader(f.ctx)), recipes.ErrNoLeader)
			f.create(f.path("a", "not a candidate"), "")
			_, err := e.Leader(f.ctx)
			f.is(err, recipes.ErrNoLeader)
			f.isNot(err, recipes.ErrSessionLost, recipes.ErrNotHeld)
		}},
		{"leader/the next candidate leads after the leader's session ends, and has not acknowledged", func(f *fixture) {
			s := f.open()
			l := f.lead(s, f.path("a"))
			f.must(l.Acknowledge(f.ctx, nil))
			next := electionKind.waits(f, f.open(), f.path("a"))
			f.expire(s)
			won := next.must(f)
			got := get(f, f.election(f.open(), f.path("a")).Leader)
			if got.Znode != won.Znode() || got.Acknowledged {
				f.Errorf("leader %+v; want %s without an acknowledgement", got, won.Znode())
			}
		}},
	}, acknowledgeTests(), observeTests())
}

func (f *fixture) election(s recipes.Recipes, path string) recipes.Election {
	f.Helper()
	return must.Get(s.Election(path, recipes.ElectionConfig{}))(f)
}

// lead wins an election without other candidates.
func (f *fixture) lead(s recipes.Recipes, path string) recipes.Leadership {
	f.Helper()
	return must.Get(f.election(s, path).Campaign(f.ctx, []byte("proposal")))(f)
}
