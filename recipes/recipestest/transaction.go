package recipestest

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/zkrecipes/zkrecipes/recipes"
)

func transactionTests() []test {
	var all []test
	for _, v := range recipes.Variants() {
		for _, t := range []struct {
			name string
			run  func(*fixture, recipes.Variant)
		}{
			{"all vote to commit, and all learn it", allCommit},
			{"one vote to abort decides before the others vote", earlyAbort},
			{"the nodes are the text's", transactionNodes},
			{"the decision does not change", decisionStands},
			{"a second vote has to be the same", votesOnce},
			{"who is not of the group is refused", strangers},
			{"a site that comes back learns the decision", comesBack},
			{"a coordinator that dies is replaced", coordinatorDies},
			{"a lost connection does not end a wait", waitReconnects},
			{"the loss of the session ends a wait", waitSessionLost},
			{"cancelling ends a wait", waitCancelled},
			{"abort ends what nobody votes on", givenUp},
			{"the last site that is done deletes it", cleanedUp},
			{"a path is used again, and not by those who come late", usedAgain},
			{"many try to decide, and one decides", decideOnce},
			{"a lost reply to the beginning does not begin twice", beginReplyLost},
			{"a lost reply to a vote is made good", voteReplyLost},
			{"status shows it", transactionStatus},
		} {
			all = append(all, test{string(v) + "/" + t.name, func(f *fixture) { t.run(f, v) }})
		}
		all = append(all, transactionContextTests(v)...)
	}
	return append(all,
		test{"own-nodes/a site that dies before it votes is an abort", siteDies},
		test{"own-nodes/a site that dies after it voted, before the decision, is an abort", votedSiteDies},
		test{"own-nodes/a site that dies while another has yet to join is an abort", siteDiesBeforeOthersJoin},
		test{"own-nodes/a site that dies after the decision changes nothing", siteDiesAfterwards},
		test{"own-nodes/a dead site cannot vote or join again", deadSite},
		test{"own-nodes/who joins late is waited for", joinsLate},
		test{"a bad argument is ErrInvalid", transactionInvalid},
		test{"without a transaction it is ErrNoTransaction", noTransaction},
	)
}

// party is a transaction with its sites, each with a session of its own.
type party struct {
	f           *fixture
	coordinator recipes.Session
	tx          recipes.Transaction
	sessions    []recipes.Session
	sites       []recipes.Site
}

func (f *fixture) transaction(s recipes.Session, v recipes.Variant) recipes.Transaction {
	f.Helper()
	t, err := s.Transaction(f.path("app", "Tx"), recipes.TransactionConfig{Variant: v})
	f.must(err)
	return t
}

// party begins a transaction and has n sites join.
func (f *fixture) party(v recipes.Variant, n int) *party {
	f.Helper()
	p := &party{f: f, coordinator: f.open()}
	p.tx = f.transaction(p.coordinator, v)
	f.must(p.tx.Begin(f.ctx, []byte("payload"), names(n)...))
	for _, name := range names(n) {
		s := f.open()
		p.sessions = append(p.sessions, s)
		site, err := f.transaction(s, "").Join(f.ctx, name)
		f.must(err)
		p.sites = append(p.sites, site)
	}
	return p
}

func names(n int) (names []string) {
	for i := range n {
		names = append(names, fmt.Sprint(i+1))
	}
	return names
}

func (p *party) vote(votes ...recipes.Vote) {
	p.f.Helper()
	for i, v := range votes {
		if v != recipes.NotVoted {
			p.f.must(p.sites[i].Vote(p.f.ctx, v))
		}
	}
}

type awaited = pending[recipes.Decision]

// wait has everybody wait in the background, and returns when all have looked.
func (p *party) wait() []*awaited {
	p.f.Helper()
	calls := []*awaited{start(p.f, func() (recipes.Decision, error) { return p.tx.Coordinate(p.f.ctx) })}
	for _, s := range p.sites {
		calls = append(calls, start(p.f, func() (recipes.Decision, error) { return s.Wait(p.f.ctx) }))
	}
	for _, s := range append([]recipes.Session{p.coordinator}, p.sessions...) {
		p.f.reach(s, func(c recipes.Counters) bool { return c.ByKind["exists"] > 0 })
	}
	return calls
}

func (p *party) decided(calls []*awaited, commit bool, reason string) {
	p.f.Helper()
	for _, c := range calls {
		p.f.decision(c.value1(p.f), commit, reason)
	}
}

func (f *fixture) decision(d recipes.Decision, commit bool, reason string) {
	f.Helper()
	if d.Commit != commit || !strings.Contains(d.Reason, reason) {
		f.Errorf("decided %+v; want commit %v, because of %q", d, commit, reason)
	}
}

const (
	commits = recipes.VoteCommit
	aborts  = recipes.VoteAbort
	silent  = recipes.NotVoted
)

func allCommit(f *fixture, v recipes.Variant) {
	p := f.party(v, 3)
	for i, s := range p.sites {
		if s.Name() != names(3)[i] || string(s.Payload()) != "payload" {
			f.Errorf("site %q with payload %q", s.Name(), s.Payload())
		}
	}
	calls := p.wait()
	p.vote(commits, commits)
	for _, c := range calls {
		c.blocked(f)
	}
	p.vote(silent, silent, commits)
	p.decided(calls, true, "")
}

func earlyAbort(f *fixture, v recipes.Variant) {
	p := f.party(v, 3)
	calls := p.wait()
	p.vote(silent, aborts)
	p.decided(calls, false, "2")
	p.vote(commits) // too late, and no error
	d, err := p.sites[2].Wait(f.ctx)
	f.must(err)
	f.decision(d, false, "2")
}

func transactionNodes(f *fixture, v recipes.Variant) {
	p := f.party(v, 2)
	path := f.path("app", "Tx")
	if data, stat := f.read(path); data != "payload" || stat.EphemeralOwner != 0 {
		f.Errorf("%s holds %q", path, data)
	}
	for i, s := range p.sessions {
		data, stat := f.read(path + "/s_" + names(2)[i])
		owner := int64(0)
		if v == recipes.OwnNodes {
			owner = s.ID()
		}
		if data != "" || stat.EphemeralOwner != owner {
			f.Errorf("s_%d holds %q of owner %#x", i+1, data, stat.EphemeralOwner)
		}
	}
	p.vote(commits, aborts)
	for i, want := range []string{"commit", "abort"} {
		if data, _ := f.read(path + "/s_" + names(2)[i]); data != want {
			f.Errorf("s_%d holds %q; want %q", i+1, data, want)
		}
	}
	_, err := p.tx.Coordinate(f.ctx)
	f.must(err)
	if data, stat := f.read(path + "/decision"); !strings.HasPrefix(data, "abort site 2 voted so\n") || stat.EphemeralOwner != 0 {
		f.Errorf("the decision is %q of owner %#x", data, stat.EphemeralOwner)
	}
}

func decisionStands(f *fixture, v recipes.Variant) {
	p := f.party(v, 2)
	p.vote(commits, commits)
	d, err := p.tx.Coordinate(f.ctx)
	f.must(err)
	f.decision(d, true, "")
	d, err = p.tx.Abort(f.ctx, "too late")
	f.must(err)
	f.decision(d, true, "")
	f.is(p.sites[0].Vote(f.ctx, aborts), recipes.ErrVoted)
	for _, s := range p.sites {
		d, err := s.Wait(f.ctx)
		f.must(err)
		f.decision(d, true, "")
	}
}

func votesOnce(f *fixture, v recipes.Variant) {
	p := f.party(v, 2)
	for range 2 {
		p.vote(commits)
	}
	f.is(p.sites[0].Vote(f.ctx, aborts), recipes.ErrVoted)
	p.vote(silent, aborts)
	f.is(p.sites[1].Vote(f.ctx, commits), recipes.ErrVoted)
	f.is(p.sites[1].Vote(f.ctx, "perhaps"), recipes.ErrInvalid)
	f.is(p.sites[1].Vote(f.ctx, recipes.NotVoted), recipes.ErrInvalid)
}

func strangers(f *fixture, v recipes.Variant) {
	p := f.party(v, 2)
	for _, name := range []string{"3", "", "s_1"} {
		site, err := p.tx.Join(f.ctx, name)
		f.is(err, recipes.ErrUnknownSite)
		if site != nil {
			f.Errorf("%q joined", name)
		}
	}
	f.is(p.tx.Begin(f.ctx, nil, "4"), recipes.ErrNodeExists)
}

func comesBack(f *fixture, v recipes.Variant) {
	p := f.party(v, 2)
	p.vote(commits, commits)
	_, err := p.tx.Coordinate(f.ctx)
	f.must(err)
	f.must(p.sessions[1].Close(f.ctx))
	again, err := f.transaction(f.open(), "").Join(f.ctx, "2")
	f.must(err)
	d, err := again.Wait(f.ctx)
	f.must(err)
	f.decision(d, true, "")
	f.must(again.Done(f.ctx))
	f.must(p.sites[0].Done(f.ctx))
	f.awaitNode(f.path("app", "Tx"), false)
}

func coordinatorDies(f *fixture, v recipes.Variant) {
	p := f.party(v, 3)
	calls := p.wait()[1:]
	p.vote(commits)
	f.must(p.coordinator.Close(f.ctx))
	p.vote(silent, commits, commits)
	p.decided(calls, true, "")

	f2 := *f
	f2.root += "-2"
	p = f2.party(v, 2)
	p.vote(commits, commits)
	f.must(p.coordinator.Close(f.ctx)) // before it has counted, and before anybody waits
	for _, s := range p.sites {
		d, err := s.Wait(f.ctx)
		f.must(err)
		f.decision(d, true, "")
	}
}

func waitReconnects(f *fixture, v recipes.Variant) {
	p := f.party(v, 2)
	calls := p.wait()
	for _, s := range append([]recipes.Session{p.coordinator}, p.sessions[0]) {
		f.sever(s)
	}
	p.vote(silent, commits)
	calls[1].blocked(f)
	for _, s := range append([]recipes.Session{p.coordinator}, p.sessions[0]) {
		f.proxy.restore(s.ID())
	}
	p.vote(commits)
	p.decided(calls, true, "")
}

func waitSessionLost(f *fixture, v recipes.Variant) {
	p := f.party(v, 2)
	calls := p.wait()
	for i, s := range []recipes.Session{p.coordinator, p.sessions[0]} {
		f.must(s.Close(f.ctx))
		_, err := calls[i].result(f)
		f.is(err, recipes.ErrSessionLost, recipes.ErrClosed)
	}
	_, err := p.tx.Abort(f.ctx, "")
	f.is(err, recipes.ErrSessionLost)
	_, err = f.transaction(f.open(), "").Abort(f.ctx, "somebody has to")
	f.must(err)
	if d := calls[2].value1(f); d.Commit {
		f.Errorf("decided %+v", d)
	}
}

func waitCancelled(f *fixture, v recipes.Variant) {
	p := f.party(v, 2)
	_, err := p.sites[0].Wait(f.briefly())
	f.is(err, context.DeadlineExceeded)
	_, err = p.tx.Coordinate(f.briefly())
	f.is(err, context.DeadlineExceeded)
	p.vote(commits, commits)
	d, err := p.tx.Coordinate(f.ctx)
	f.must(err)
	f.decision(d, true, "")
}

func givenUp(f *fixture, v recipes.Variant) {
	p := f.party(v, 2)
	calls := p.wait()
	p.vote(commits)
	d, err := p.tx.Abort(f.ctx, "took too long")
	f.must(err)
	f.decision(d, false, "took too long")
	p.decided(calls, false, "took too long")
}

func cleanedUp(f *fixture, v recipes.Variant) {
	p := f.party(v, 3)
	p.vote(commits, commits)
	f.is(p.sites[0].Done(f.ctx), recipes.ErrUndecided)
	f.is(p.tx.Forget(f.ctx), recipes.ErrUndecided)
	p.vote(silent, silent, commits)
	_, err := p.tx.Coordinate(f.ctx)
	f.must(err)
	for range 2 {
		f.must(p.sites[0].Done(f.ctx))
		f.must(p.sites[1].Done(f.ctx))
	}
	err = p.tx.Forget(f.ctx)
	f.is(err, recipes.ErrUndecided)
	if err != nil && !strings.Contains(err.Error(), `"3"`) {
		f.Errorf("%v does not name who is missing", err)
	}
	d, err := p.sites[2].Wait(f.ctx)
	f.must(err)
	f.decision(d, true, "")
	f.must(p.sites[2].Done(f.ctx))
	if f.exists(f.path("app", "Tx")) {
		f.Error("it is still there")
	}
	f.must(p.sites[0].Done(f.ctx))
	f.must(p.tx.Forget(f.ctx))
	_, err = p.tx.Status(f.ctx)
	f.is(err, recipes.ErrNoTransaction)
}

func usedAgain(f *fixture, v recipes.Variant) {
	late := f.party(v, 2)
	late.vote(silent, aborts)
	_, err := late.tx.Coordinate(f.ctx)
	f.must(err)
	for _, name := range names(2) { // others finish for them, as an operator would
		again, err := f.transaction(f.open(), "").Join(f.ctx, name)
		if errors.Is(err, recipes.ErrNotHeld) {
			f.Fatal(err)
		}
		f.must(err)
		f.must(again.Done(f.ctx))
	}
	next := f.party(v, 2)
	f.is(late.sites[0].Vote(f.ctx, aborts), recipes.ErrNoTransaction)
	f.must(late.sites[0].Done(f.ctx))
	next.vote(commits, commits)
	d, err := next.tx.Coordinate(f.ctx)
	f.must(err)
	f.decision(d, true, "")
	_, err = late.sites[0].Wait(f.ctx)
	f.is(err, recipes.ErrNoTransaction)
	f.is(next.tx.Forget(f.ctx), recipes.ErrUndecided)
}

func decideOnce(f *fixture, v recipes.Variant) {
	p := f.party(v, 4)
	calls := p.wait()
	var aborting []*awaited
	for _, s := range p.sessions {
		tx := f.transaction(s, "")
		aborting = append(aborting, start(f, func() (recipes.Decision, error) { return tx.Abort(f.ctx, "race") }))
	}
	for _, s := range p.sites {
		f.must(s.Vote(f.ctx, commits))
	}
	want := aborting[0].value1(f)
	for _, c := range append(calls, aborting...) {
		if got := c.value1(f); got != want {
			f.Errorf("decided %+v and %+v", got, want)
		}
	}
}

func beginReplyLost(f *fixture, v recipes.Variant) {
	s := f.open()
	_, err := f.lock(s, f.path("app")).Contenders(f.ctx)
	f.must(err)
	f.create(f.path("app"), "")
	f.proxy.holdReplies(s.ID())
	tx := f.transaction(s, v)
	call := startErr(f, func() error { return tx.Begin(f.ctx, nil, "1") })
	f.awaitNode(f.path("app", "Tx"), true)
	_, first := f.read(f.path("app", "Tx"))
	f.proxy.cut(s.ID())
	f.proxy.restore(s.ID())
	_, err = call.result(f)
	f.must(err)
	if _, stat := f.read(f.path("app", "Tx")); stat.Czxid != first.Czxid {
		f.Error("it was begun twice")
	}
	f.awaitChildren(f.path("app"), 1) // the marker goes
	f.is(tx.Begin(f.ctx, nil, "1"), recipes.ErrNodeExists)
	f.awaitChildren(f.path("app"), 1)
}

func voteReplyLost(f *fixture, v recipes.Variant) {
	p := f.party(v, 1)
	f.proxy.holdReplies(p.sessions[0].ID())
	call := startErr(f, func() error { return p.sites[0].Vote(f.ctx, commits) })
	d, err := p.tx.Coordinate(f.ctx)
	f.must(err)
	f.decision(d, true, "")
	f.proxy.cut(p.sessions[0].ID())
	f.proxy.restore(p.sessions[0].ID())
	_, err = call.result(f)
	f.must(err)
}

func transactionStatus(f *fixture, v recipes.Variant) {
	p := f.party(v, 2)
	p.vote(silent, aborts)
	got, err := p.tx.Status(f.ctx)
	f.must(err)
	if got.Variant != v || string(got.Payload) != "payload" || len(got.Sites) != 2 || got.Decision != nil ||
		got.Coordinated != (v != recipes.AllWatch) {
		f.Fatalf("status %+v", got)
	}
	if got.Sites[0].Name != "1" || got.Sites[0].Vote != silent || got.Sites[1].Vote != aborts {
		f.Errorf("sites %+v", got.Sites)
	}
	_, err = p.tx.Coordinate(f.ctx)
	f.must(err)
	f.must(p.sites[0].Done(f.ctx))
	got, err = p.tx.Status(f.ctx)
	f.must(err)
	if got.Decision == nil || got.Decision.Commit || !got.Sites[0].Done || got.Sites[1].Done {
		f.Errorf("status %+v", got)
	}
}

func siteDies(f *fixture) {
	p := f.party(recipes.OwnNodes, 3)
	calls := p.wait()
	p.vote(commits)
	f.expire(p.sessions[1])
	p.decided([]*awaited{calls[0], calls[1], calls[3]}, false, "2 has died")
}

func votedSiteDies(f *fixture) {
	p := f.party(recipes.OwnNodes, 2)
	p.vote(commits)
	f.must(p.sessions[0].Close(f.ctx))
	p.vote(silent, commits)
	d, err := p.tx.Coordinate(f.ctx)
	f.must(err)
	f.decision(d, false, "1 has died")
}

func siteDiesBeforeOthersJoin(f *fixture) {
	s := f.open()
	tx := f.transaction(s, recipes.OwnNodes)
	f.must(tx.Begin(f.ctx, nil, "1", "2", "3"))
	call := start(f, func() (recipes.Decision, error) { return tx.Coordinate(f.ctx) })
	f.reach(s, func(c recipes.Counters) bool { return listings(c) > 0 })
	dying := f.open()
	_, err := f.transaction(dying, "").Join(f.ctx, "2")
	f.must(err)
	call.blocked(f)
	f.must(dying.Close(f.ctx))
	f.decision(call.value1(f), false, "2 has died")
}

func siteDiesAfterwards(f *fixture) {
	p := f.party(recipes.OwnNodes, 2)
	p.vote(commits, commits)
	d, err := p.tx.Coordinate(f.ctx)
	f.must(err)
	f.decision(d, true, "")
	for _, s := range p.sessions {
		f.must(s.Close(f.ctx))
	}
	d, err = p.tx.Coordinate(f.ctx)
	f.must(err)
	f.decision(d, true, "")
}

func deadSite(f *fixture) {
	p := f.party(recipes.OwnNodes, 2)
	f.remove(f.path("app", "Tx", "s_1"))
	f.is(p.sites[0].Vote(f.ctx, commits), recipes.ErrNotHeld)
	_, err := f.transaction(f.open(), "").Join(f.ctx, "1")
	f.is(err, recipes.ErrNotHeld)
	_, err = f.transaction(f.open(), "").Join(f.ctx, "2") // it lives, in another session
	f.is(err, recipes.ErrNotHeld)
	_, err = f.transaction(p.sessions[1], "").Join(f.ctx, "2")
	f.must(err)
	status, err := p.tx.Status(f.ctx)
	f.must(err)
	if !status.Sites[0].Dead || !status.Sites[0].Joined || status.Sites[1].Dead {
		f.Errorf("sites %+v", status.Sites)
	}
}

func joinsLate(f *fixture) {
	s := f.open()
	tx := f.transaction(s, recipes.OwnNodes)
	f.must(tx.Begin(f.ctx, nil, "1", "2"))
	call := start(f, func() (recipes.Decision, error) { return tx.Coordinate(f.ctx) })
	for _, name := range []string{"2", "1"} {
		f.reach(s, func(c recipes.Counters) bool { return listings(c) > 0 })
		call.blocked(f)
		site, err := f.transaction(f.open(), "").Join(f.ctx, name)
		f.must(err)
		f.must(site.Vote(f.ctx, commits))
	}
	f.decision(call.value1(f), true, "")
}

func transactionInvalid(f *fixture) {
	s := f.open()
	for _, bad := range []struct {
		path    string
		variant recipes.Variant
	}{{"relative", ""}, {"", ""}, {"/", ""}, {"/a", "by-hope"}} {
		t, err := s.Transaction(bad.path, recipes.TransactionConfig{Variant: bad.variant})
		f.is(err, recipes.ErrInvalid)
		if t != nil {
			f.Errorf("%+v gave a transaction", bad)
		}
	}
	tx := f.transaction(s, "")
	for _, sites := range [][]string{nil, {""}, {"a/b"}, {"a", "a"}, {"a\x00"}} {
		f.is(tx.Begin(f.ctx, nil, sites...), recipes.ErrInvalid)
	}
	if f.exists(f.path("app")) {
		f.Error("something was created")
	}
	f.is(tx.Begin(f.ctx, make([]byte, recipes.DefaultMaxPacket), "1"), recipes.ErrTooLarge)
}

func noTransaction(f *fixture) {
	tx := f.transaction(f.open(), "")
	_, err := tx.Join(f.ctx, "1")
	f.is(err, recipes.ErrNoTransaction)
	_, err = tx.Coordinate(f.ctx)
	f.is(err, recipes.ErrNoTransaction)
	_, err = tx.Abort(f.ctx, "")
	f.is(err, recipes.ErrNoTransaction)
	_, err = tx.Status(f.ctx)
	f.is(err, recipes.ErrNoTransaction)
	f.must(tx.Forget(f.ctx))
}

// transactionContextTests are about contexts that end, for every call alike.
func transactionContextTests(v recipes.Variant) []test {
	calls := []struct {
		name string
		call func(context.Context, recipes.Transaction, recipes.Site) error
	}{
		{"Begin", func(ctx context.Context, t recipes.Transaction, _ recipes.Site) error { return t.Begin(ctx, nil, "1") }},
		{"Coordinate", func(ctx context.Context, t recipes.Transaction, _ recipes.Site) error {
			_, err := t.Coordinate(ctx)
			return err
		}},
		{"Abort", func(ctx context.Context, t recipes.Transaction, _ recipes.Site) error {
			_, err := t.Abort(ctx, "")
			return err
		}},
		{"Join", func(ctx context.Context, t recipes.Transaction, _ recipes.Site) error {
			_, err := t.Join(ctx, "1")
			return err
		}},
		{"Status", func(ctx context.Context, t recipes.Transaction, _ recipes.Site) error {
			_, err := t.Status(ctx)
			return err
		}},
		{"Forget", func(ctx context.Context, t recipes.Transaction, _ recipes.Site) error { return t.Forget(ctx) }},
		{"Vote", func(ctx context.Context, _ recipes.Transaction, s recipes.Site) error { return s.Vote(ctx, commits) }},
		{"Wait", func(ctx context.Context, _ recipes.Transaction, s recipes.Site) error {
			_, err := s.Wait(ctx)
			return err
		}},
		{"Done", func(ctx context.Context, _ recipes.Transaction, s recipes.Site) error { return s.Done(ctx) }},
	}
	var tests []test
	for _, c := range calls {
		for name, fault := range map[string]func(*fixture, recipes.Session){
			"a server that does not answer": func(f *fixture, s recipes.Session) { f.proxy.freeze(s.ID()) },
			"a connection that is down":     func(f *fixture, s recipes.Session) { f.sever(s) },
		} {
			tests = append(tests, test{string(v) + "/" + name + "/" + c.name, func(f *fixture) {
				p := f.party(v, 1)
				tx := f.transaction(p.sessions[0], v)
				fault(f, p.sessions[0])
				err := c.call(f.briefly(), tx, p.sites[0])
				f.is(err, context.DeadlineExceeded)
				f.isNot(err, recipes.ErrSessionLost)
				if name == "a connection that is down" && !errors.Is(err, recipes.ErrUnknownOutcome) {
					f.is(err, recipes.ErrUnavailable)
				}
				f.proxy.restore(p.sessions[0].ID())
				f.must(p.sites[0].Vote(f.ctx, commits))
				_, err = p.tx.Coordinate(f.ctx)
				f.must(err)
				_, err = p.sites[0].Wait(f.ctx)
				f.must(err)
				f.must(p.sites[0].Done(f.ctx))
				f.awaitNode(f.path("app", "Tx"), false)
			}})
		}
	}
	return tests
}
