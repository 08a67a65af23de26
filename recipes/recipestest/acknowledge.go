package recipestest

import (
	"context"
	"fmt"
	gopath "path"
	"regexp"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/recipes"
)

func acknowledgeTests() []test {
	return []test{
		{"acknowledge/it creates a znode with the name of the leader's znode", func(f *fixture) {
			s := f.open()
			l := f.lead(s, f.path("a"))
			f.must(l.Acknowledge(f.ctx, []byte("done")))
			data, stat := f.read(acknowledgement(l))
			if data != "done" || stat.EphemeralOwner != s.ID() {
				f.Errorf("%q of owner %#x; want the session %#x", data, stat.EphemeralOwner, s.ID())
			}
			name := strings.TrimPrefix(acknowledgement(l), f.path("a")+"/acks/")
			want := `^n_[0-9]{10}-[0-9a-f]+$`
			if !f.since35() {
				want = `^_c_` + guid + `-n_[0-9]{10}$`
			}
			f.failIf(!regexp.MustCompile(want).MatchString(name), "the name is %s", name)
			e := f.election(f.open(), f.path("a"))
			got := get(f, e.Leader)
			if !got.Acknowledged || string(got.Acknowledgement) != "done" || string(got.Data) != "proposal" {
				f.Errorf("leader %+v; want it to have acknowledged", got)
			}
			in := get(f, e.Candidates)
			f.failIf(len(in) != 1, "candidates %+v; want no acknowledgement among them", in)
			f.held(l)
		}},
		{"acknowledge/a second call replaces the data, and the znode is deleted when the leader resigns", func(f *fixture) {
			l := f.lead(f.open(), f.path("a"))
			for _, data := range []string{"first", "second", ""} {
				f.must(l.Acknowledge(f.ctx, []byte(data)))
				got, _ := f.read(acknowledgement(l))
				f.failIf(got != data, "acknowledged with %q; want %q", got, data)
			}
			f.awaitChildren(f.path("a"), 1)
			f.awaitChildren(f.path("a", "acks"), 1)
			f.must(l.Resign(f.ctx))
			f.empty(f.path("a"), f.path("a", "acks"))
		}},
		{"acknowledge/a call after a deletion creates the znode again", func(f *fixture) {
			l := f.lead(f.open(), f.path("a"))
			f.must(l.Acknowledge(f.ctx, nil))
			f.remove(acknowledgement(l))
			f.held(l)
			f.must(l.Acknowledge(f.ctx, []byte("again")))
			got, _ := f.read(acknowledgement(l))
			f.failIf(got != "again", "acknowledged with %q", got)
			f.must(l.Resign(f.ctx))
			f.awaitChildren(f.path("a"), 0)
		}},
		{"acknowledge/the znode is deleted when the leader's znode is deleted", func(f *fixture) {
			watched, unwatched := f.lead(f.open(), f.path("a")), f.lead(f.open(), f.path("b"))
			f.held(watched)
			for _, l := range []recipes.Leadership{watched, unwatched} {
				f.must(l.Acknowledge(f.ctx, nil))
				f.remove(l.Znode())
			}
			f.awaitNode(acknowledgement(watched), false)
			f.is(unwatched.Write(f.ctx), recipes.ErrRemoved) // the write notices the deletion
			f.awaitNode(acknowledgement(unwatched), false)
		}},
		{"acknowledge/a deposed leader gets ErrRemoved", func(f *fixture) {
			l := f.lead(f.open(), f.path("a"))
			f.remove(l.Znode())
			won := f.lead(f.open(), f.path("a"))
			f.is(l.Acknowledge(f.ctx, nil), recipes.ErrNotHeld, recipes.ErrRemoved)
			got := get(f, f.election(f.open(), f.path("a")).Leader)
			if got.Znode != won.Znode() || got.Acknowledged {
				f.Errorf("leader %+v; want %s without an acknowledgement", got, won.Znode())
			}
			f.awaitChildren(f.path("a"), 1)
		}},
		{"acknowledge/a leader that has resigned gets ErrReleased", func(f *fixture) {
			l := f.lead(f.open(), f.path("a"))
			f.must(l.Resign(f.ctx))
			f.is(l.Acknowledge(f.ctx, nil), recipes.ErrNotHeld, recipes.ErrReleased)
			f.awaitChildren(f.path("a"), 0)
		}},
		{"acknowledge/a call on a lost session is ErrNotHeld", func(f *fixture) {
			s := f.open()
			l := f.lead(s, f.path("a"))
			f.expire(s)
			f.is(l.Acknowledge(f.ctx, nil), recipes.ErrNotHeld, recipes.ErrSessionLost, recipes.ErrExpired)
			f.awaitChildren(f.path("a"), 0)
		}},
		{"acknowledge/a concurrent resignation leaves no acknowledgement", func(f *fixture) {
			s := f.open()
			for range 10 {
				l := f.lead(s, f.path("a"))
				call := startErr(f, func() error { return l.Acknowledge(f.ctx, nil) })
				f.must(l.Resign(f.ctx))
				if _, err := call.result(f); err != nil {
					f.is(err, recipes.ErrNotHeld)
				}
				f.awaitChildren(f.path("a"), 0)
				f.awaitChildren(f.path("a", "acks"), 0)
			}
		}},
		{"acknowledge/a lost reply is ErrUnknownOutcome, and resigning still deletes the znode", func(f *fixture) {
			s := f.open()
			l := f.lead(s, f.path("a"))
			// Create the guard and the parent of acknowledgements now, so that the next transaction is
			// the acknowledgement.
			f.must(l.Write(f.ctx))
			must.Get(f.outside.Create(f.path("a", "acks"), nil, 0, zk.WorldACL(zk.PermAll)))(f)
			f.relay(s).HoldReplies()
			call := startErr(f, func() error { return l.Acknowledge(f.ctx, nil) })
			f.awaitNode(acknowledgement(l), true)
			f.lose(s)
			f.is(call.failure(f), recipes.ErrUnknownOutcome)
			f.must(l.Resign(f.ctx))
			f.awaitChildren(f.path("a"), 0)
			f.awaitNode(acknowledgement(l), false)
		}},
		{"acknowledged/a leader that has not acknowledged does not end the wait", func(f *fixture) {
			waiting := f.open()
			e := f.election(waiting, f.path("a"))
			call := start(f, func() (recipes.Leader, error) { return e.Acknowledged(f.ctx) })
			l := f.lead(f.open(), f.path("a"))
			next := electionKind.waits(f, f.open(), f.path("a"))
			// When another observer of the session has seen the leader, Acknowledged has read it too.
			f.observes(waiting, f.path("a"), func(got recipes.Leader) bool { return got.Znode == l.Znode() })
			call.blocked(f)
			f.must(l.Resign(f.ctx))
			won := next.must(f)
			f.observes(waiting, f.path("a"), func(got recipes.Leader) bool { return got.Znode == won.Znode() })
			call.blocked(f)
			f.must(won.Grant.(recipes.Leadership).Acknowledge(f.ctx, []byte("done")))
			got := call.must(f)
			if got.Znode != won.Znode() || !got.Acknowledged || string(got.Acknowledgement) != "done" {
				f.Errorf("acknowledged by %+v; want %s", got, won.Znode())
			}
			again := get(f, e.Acknowledged)
			f.failIf(again.Znode != won.Znode(), "acknowledged by %+v; want %s", again, won.Znode())
		}},
		{"acknowledged/the acknowledgement of an earlier leader does not count", func(f *fixture) {
			old := f.lead(f.open(), f.path("a"))
			f.must(old.Resign(f.ctx))
			f.create(f.path("a"), "")
			f.create(acknowledgement(old), "left over")
			f.lead(f.open(), f.path("a"))
			e := f.election(f.open(), f.path("a"))
			got := get(f, e.Leader)
			f.failIf(got.Acknowledged, "leader %+v; want it not to have acknowledged", got)
			f.is(errOf(e.Acknowledged(f.briefly())), context.DeadlineExceeded)
		}},
		{"acknowledged/the loss of the session ends the wait", func(f *fixture) {
			s := f.open()
			e := f.election(s, f.path("a"))
			call := start(f, func() (recipes.Leader, error) { return e.Acknowledged(f.ctx) })
			f.must(s.Close(f.ctx))
			f.is(call.failure(f), recipes.ErrSessionLost, recipes.ErrClosed)
		}},
		{"acknowledged/a lost connection does not end the wait", func(f *fixture) {
			l := f.lead(f.open(), f.path("a"))
			s := f.open()
			e := f.election(s, f.path("a"))
			call := start(f, func() (recipes.Leader, error) { return e.Acknowledged(f.ctx) })
			f.reach(s, func(c recipes.Stats) bool { return c.ByKind["exists"] > 0 })
			f.sever(s)
			f.must(l.Acknowledge(f.ctx, nil))
			call.blocked(f)
			f.restore(s)
			got := call.must(f)
			f.failIf(got.Znode != l.Znode(), "acknowledged by %+v; want %s", got, l.Znode())
		}},
	}
}

// acknowledgement returns the path of the znode that recipes.Election documents.
func acknowledgement(l recipes.Leadership) string {
	name := gopath.Base(l.Znode())
	if strings.HasPrefix(name, "n_") {
		name = fmt.Sprintf("%s-%x", name, int64(l.Token()))
	}
	return gopath.Join(gopath.Dir(l.Znode()), "acks", name)
}
