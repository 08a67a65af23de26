package recipestest

import (
	"context"
	"fmt"
	gopath "path"
	"regexp"
	"slices"
	"strings"

	"github.com/go-zookeeper/zk"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// electionTests are what only an election promises.
func electionTests() []test {
	return slices.Concat([]test{
		{"leader/the first candidate leads, with its proposal", leaderIsFirst},
		{"leader/nobody is ErrNoLeader", noLeader},
		{"leader/the next leads when the leader resigns", nextLeads},
		{"leader/the next leads when the leader's session is gone", nextLeadsAfterLoss},
		{"leader/the zero Leader is None", zeroLeader},
	}, acknowledgeTests(), observeTests())
}

func (f *fixture) election(s recipes.Session, path string) recipes.Election {
	f.Helper()
	e, err := s.Election(path, recipes.ElectionConfig{})
	f.must(err)
	return e
}

// lead wins an election in which nobody is ahead.
func (f *fixture) lead(s recipes.Session, path string) recipes.Leadership {
	f.Helper()
	l, err := f.election(s, path).Campaign(f.ctx, []byte("proposal"))
	f.must(err)
	return l
}

func leaderIsFirst(f *fixture) {
	s := f.open()
	l, err := f.election(s, f.path("a")).Campaign(f.ctx, []byte("my address"))
	f.must(err)
	electionKind("").waits(f, f.open(), f.path("a"))
	got, err := f.election(f.open(), f.path("a")).Leader(f.ctx)
	f.must(err)
	if got.Znode != l.Znode() || got.Token != l.Token() || got.SessionID != s.ID() || string(got.Data) != "my address" {
		f.Errorf("leader %+v; want %s with token %d", got, l.Znode(), l.Token())
	}
	if got.None() || got.Acknowledged || len(got.Acknowledgement) != 0 {
		f.Errorf("leader %+v; want it not to have acknowledged", got)
	}
}

func noLeader(f *fixture) {
	e := f.election(f.open(), f.path("a"))
	_, err := e.Leader(f.ctx)
	f.is(err, recipes.ErrNoLeader)
	f.create(f.path("a", "not a candidate"), "")
	_, err = e.Leader(f.ctx)
	f.is(err, recipes.ErrNoLeader)
	f.isNot(err, recipes.ErrSessionLost, recipes.ErrNotHeld)
}

func nextLeads(f *fixture) {
	l := f.lead(f.open(), f.path("a"))
	next := electionKind("").waits(f, f.open(), f.path("a"))
	e := f.election(f.open(), f.path("a"))
	f.must(l.Resign(f.ctx))
	won := next.value1(f)
	got, err := e.Leader(f.ctx)
	f.must(err)
	if got.Znode != won.Znode() {
		f.Errorf("leader %s; want %s", got.Znode, won.Znode())
	}
	f.must(won.GiveBack(f.ctx))
	_, err = e.Leader(f.ctx)
	f.is(err, recipes.ErrNoLeader)
}

func nextLeadsAfterLoss(f *fixture) {
	s := f.open()
	l := f.lead(s, f.path("a"))
	f.must(l.Acknowledge(f.ctx, nil))
	next := electionKind("").waits(f, f.open(), f.path("a"))
	f.expire(s)
	won := next.value1(f)
	got, err := f.election(f.open(), f.path("a")).Leader(f.ctx)
	f.must(err)
	if got.Znode != won.Znode() || got.Acknowledged {
		f.Errorf("leader %+v; want %s without an acknowledgement", got, won.Znode())
	}
}

func zeroLeader(f *fixture) {
	if !(recipes.Leader{}).None() {
		f.Error("the zero Leader is somebody")
	}
}

func acknowledgeTests() []test {
	return []test{
		{"acknowledge/it is a znode of the leader's own name", acknowledge},
		{"acknowledge/a second one replaces the data", acknowledgeAgain},
		{"acknowledge/it is made again when somebody deletes it", acknowledgeRestored},
		{"acknowledge/it goes when the leader resigns", acknowledgementGoesByResign},
		{"acknowledge/it goes when the leader is removed", acknowledgementGoesByRemoval},
		{"acknowledge/it goes with the session", acknowledgementGoesBySession},
		{"acknowledge/a deposed leader cannot", acknowledgeDeposed},
		{"acknowledge/who has resigned cannot", acknowledgeResigned},
		{"acknowledge/on a lost session it is ErrNotHeld", acknowledgeLost},
		{"acknowledge/a resignation together with it leaves nothing", acknowledgeWhileResigning},
		{"acknowledge/a lost reply is ErrUnknownOutcome, and it still goes with the leadership", acknowledgeReplyLost},
		{"acknowledged/it waits for the acknowledgement, not for the leader", acknowledgedWaits},
		{"acknowledged/that of an earlier leader does not count", acknowledgedByThisLeader},
		{"acknowledged/cancelling ends the wait", acknowledgedCancelled},
		{"acknowledged/the loss of the session ends the wait", acknowledgedLost},
		{"acknowledged/a lost connection does not end the wait", acknowledgedReconnects},
	}
}

// acknowledgement is the path of the znode, as recipes.Election documents it.
func acknowledgement(l recipes.Leadership) string {
	name := gopath.Base(l.Znode())
	if strings.HasPrefix(name, "n_") {
		name = fmt.Sprintf("%s-%x", name, int64(l.Token()))
	}
	return gopath.Join(gopath.Dir(l.Znode()), "acks", name)
}

func acknowledge(f *fixture) {
	s := f.open()
	l := f.lead(s, f.path("a"))
	f.must(l.Acknowledge(f.ctx, []byte("done")))
	data, stat := f.read(acknowledgement(l))
	if data != "done" || stat.EphemeralOwner != s.ID() {
		f.Errorf("%q of owner %#x; want the session's, %#x", data, stat.EphemeralOwner, s.ID())
	}
	if name := strings.TrimPrefix(acknowledgement(l), f.path("a")+"/acks/"); !regexp.MustCompile(`^n_[0-9]{10}-[0-9a-f]+$`).MatchString(name) {
		f.Errorf("named %s", name)
	}
	e := f.election(f.open(), f.path("a"))
	got, err := e.Leader(f.ctx)
	f.must(err)
	if !got.Acknowledged || string(got.Acknowledgement) != "done" || string(got.Data) != "proposal" {
		f.Errorf("leader %+v; want it to have acknowledged", got)
	}
	in, err := e.Candidates(f.ctx)
	f.must(err)
	if len(in) != 1 {
		f.Errorf("candidates %+v; an acknowledgement is none", in)
	}
	f.standing(l)
}

func acknowledgeAgain(f *fixture) {
	l := f.lead(f.open(), f.path("a"))
	for _, data := range []string{"first", "second", ""} {
		f.must(l.Acknowledge(f.ctx, []byte(data)))
		if got, _ := f.read(acknowledgement(l)); got != data {
			f.Errorf("acknowledged with %q; want %q", got, data)
		}
	}
	f.awaitChildren(f.path("a"), 1)
	f.awaitChildren(f.path("a", "acks"), 1)
}

func acknowledgeRestored(f *fixture) {
	l := f.lead(f.open(), f.path("a"))
	f.must(l.Acknowledge(f.ctx, nil))
	f.remove(acknowledgement(l))
	f.standing(l)
	f.must(l.Acknowledge(f.ctx, []byte("again")))
	if got, _ := f.read(acknowledgement(l)); got != "again" {
		f.Errorf("acknowledged with %q", got)
	}
	f.must(l.Resign(f.ctx))
	f.awaitChildren(f.path("a"), 0)
}

func acknowledgementGoesByResign(f *fixture) {
	l := f.lead(f.open(), f.path("a"))
	f.must(l.Acknowledge(f.ctx, nil))
	f.must(l.Resign(f.ctx))
	if names := append(f.children(f.path("a")), f.children(f.path("a", "acks"))...); len(names) != 0 {
		f.Errorf("left behind: %v", names)
	}
}

func acknowledgementGoesByRemoval(f *fixture) {
	watched, unwatched := f.lead(f.open(), f.path("a")), f.lead(f.open(), f.path("b"))
	f.standing(watched)
	for _, l := range []recipes.Leadership{watched, unwatched} {
		f.must(l.Acknowledge(f.ctx, nil))
		f.remove(l.Znode())
	}
	f.awaitNode(acknowledgement(watched), false)
	f.is(unwatched.Write(f.ctx), recipes.ErrRemoved) // it learns of it here
	f.awaitNode(acknowledgement(unwatched), false)
}

func acknowledgementGoesBySession(f *fixture) {
	s := f.open()
	l := f.lead(s, f.path("a"))
	f.must(l.Acknowledge(f.ctx, nil))
	f.must(s.Close(f.ctx))
	if names := append(f.children(f.path("a")), f.children(f.path("a", "acks"))...); len(names) != 0 {
		f.Errorf("left behind: %v", names)
	}
}

func acknowledgeDeposed(f *fixture) {
	l := f.lead(f.open(), f.path("a"))
	f.remove(l.Znode())
	won := f.lead(f.open(), f.path("a"))
	f.is(l.Acknowledge(f.ctx, nil), recipes.ErrNotHeld, recipes.ErrRemoved)
	got, err := f.election(f.open(), f.path("a")).Leader(f.ctx)
	f.must(err)
	if got.Znode != won.Znode() || got.Acknowledged {
		f.Errorf("leader %+v; want %s without an acknowledgement", got, won.Znode())
	}
	f.awaitChildren(f.path("a"), 1)
}

func acknowledgeResigned(f *fixture) {
	l := f.lead(f.open(), f.path("a"))
	f.must(l.Resign(f.ctx))
	f.is(l.Acknowledge(f.ctx, nil), recipes.ErrNotHeld, recipes.ErrReleased)
	f.awaitChildren(f.path("a"), 0)
}

func acknowledgeLost(f *fixture) {
	s := f.open()
	l := f.lead(s, f.path("a"))
	f.expire(s)
	f.is(l.Acknowledge(f.ctx, nil), recipes.ErrNotHeld, recipes.ErrSessionLost, recipes.ErrExpired)
	f.awaitChildren(f.path("a"), 0)
}

func acknowledgeWhileResigning(f *fixture) {
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
}

func acknowledgeReplyLost(f *fixture) {
	s := f.open()
	l := f.lead(s, f.path("a"))
	// The guard is there, and the place, so that the first transaction is the one.
	f.must(l.Write(f.ctx))
	_, err := f.outside.Create(f.path("a", "acks"), nil, 0, zk.WorldACL(zk.PermAll))
	f.must(err)
	f.proxy.holdReplies(s.ID())
	call := startErr(f, func() error { return l.Acknowledge(f.ctx, nil) })
	f.awaitNode(acknowledgement(l), true)
	f.proxy.cut(s.ID())
	f.proxy.restore(s.ID())
	_, err = call.result(f)
	f.is(err, recipes.ErrUnknownOutcome)
	f.must(l.Resign(f.ctx))
	f.awaitChildren(f.path("a"), 0)
	f.awaitNode(acknowledgement(l), false)
}

func acknowledgedWaits(f *fixture) {
	waiting := f.open()
	e := f.election(waiting, f.path("a"))
	call := start(f, func() (recipes.Leader, error) { return e.Acknowledged(f.ctx) })
	l := f.lead(f.open(), f.path("a"))
	next := electionKind("").waits(f, f.open(), f.path("a"))
	// Another observer of the same session tells that the leader has been seen.
	f.observes(waiting, f.path("a"), func(got recipes.Leader) bool { return got.Znode == l.Znode() })
	call.blocked(f)
	f.must(l.Resign(f.ctx))
	won := next.value1(f)
	f.observes(waiting, f.path("a"), func(got recipes.Leader) bool { return got.Znode == won.Znode() })
	call.blocked(f)
	f.must(won.(electionGrant).Acknowledge(f.ctx, []byte("done")))
	got := call.value1(f)
	if got.Znode != won.Znode() || !got.Acknowledged || string(got.Acknowledgement) != "done" {
		f.Errorf("acknowledged by %+v; want %s", got, won.Znode())
	}
	again, err := e.Acknowledged(f.ctx)
	f.must(err)
	if again.Znode != won.Znode() {
		f.Errorf("acknowledged by %+v; want %s", again, won.Znode())
	}
}

func acknowledgedByThisLeader(f *fixture) {
	old := f.lead(f.open(), f.path("a"))
	f.must(old.Resign(f.ctx))
	f.create(f.path("a"), "")
	f.create(acknowledgement(old), "left over")
	f.lead(f.open(), f.path("a"))
	e := f.election(f.open(), f.path("a"))
	got, err := e.Leader(f.ctx)
	f.must(err)
	if got.Acknowledged {
		f.Errorf("leader %+v; want it not to have acknowledged", got)
	}
	_, err = e.Acknowledged(f.briefly())
	f.is(err, context.DeadlineExceeded)
}

func acknowledgedCancelled(f *fixture) {
	e := f.election(f.open(), f.path("a"))
	_, err := e.Acknowledged(f.briefly())
	f.is(err, context.DeadlineExceeded)
	f.lead(f.open(), f.path("a"))
	_, err = e.Acknowledged(f.briefly())
	f.is(err, context.DeadlineExceeded)
	f.isNot(err, recipes.ErrNoLeader)
}

func acknowledgedLost(f *fixture) {
	s := f.open()
	e := f.election(s, f.path("a"))
	call := start(f, func() (recipes.Leader, error) { return e.Acknowledged(f.ctx) })
	f.must(s.Close(f.ctx))
	_, err := call.result(f)
	f.is(err, recipes.ErrSessionLost, recipes.ErrClosed)
}

func acknowledgedReconnects(f *fixture) {
	l := f.lead(f.open(), f.path("a"))
	s := f.open()
	e := f.election(s, f.path("a"))
	call := start(f, func() (recipes.Leader, error) { return e.Acknowledged(f.ctx) })
	f.reach(s, func(c recipes.Counters) bool { return c.ByKind["exists"] > 0 })
	f.sever(s)
	f.must(l.Acknowledge(f.ctx, nil))
	call.blocked(f)
	f.proxy.restore(s.ID())
	if got := call.value1(f); got.Znode != l.Znode() {
		f.Errorf("acknowledged by %+v; want %s", got, l.Znode())
	}
}
