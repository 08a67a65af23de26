package recipestest

import "github.com/zkrecipes/zkrecipes/recipes"

func beginReplyLost(f *fixture, v recipes.Variant) {
	s := f.open()
	get(f, f.lock(s, f.path("app")).Contenders)
	f.create(f.path("app"), "")
	f.relay(s).HoldReplies()
	tx := f.transaction(s, v)
	call := startErr(f, func() error { return tx.Begin(f.ctx, nil, "1") })
	f.awaitNode(f.path("app", "Tx"), true)
	_, first := f.read(f.path("app", "Tx"))
	f.lose(s)
	call.must(f)
	if _, stat := f.read(f.path("app", "Tx")); stat.Czxid != first.Czxid {
		f.Error("the transaction was created twice")
	}
	f.awaitChildren(f.path("app"), 1) // the receipt is deleted
	f.is(tx.Begin(f.ctx, nil, "1"), recipes.ErrNodeExists)
	f.awaitChildren(f.path("app"), 1)
}

func voteReplyLost(f *fixture, v recipes.Variant) {
	p := f.party(v, 1)
	f.relay(p.sessions[0]).HoldReplies()
	call := startErr(f, func() error { return p.sites[0].Vote(f.ctx, commits) })
	f.decision(get(f, p.tx.Coordinate), true, "")
	f.lose(p.sessions[0])
	call.must(f)
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
	want := aborting[0].must(f)
	for _, c := range append(calls, aborting...) {
		if got := c.must(f); got != want {
			f.Errorf("decided %+v and %+v", got, want)
		}
	}
}

func decisionIsFinal(f *fixture, v recipes.Variant) {
	p := f.party(v, 2)
	p.vote(commits, commits)
	f.decision(get(f, p.tx.Coordinate), true, "")
	d, err := p.tx.Abort(f.ctx, "too late")
	f.must(err)
	f.decision(d, true, "")
	f.is(p.sites[0].Vote(f.ctx, aborts), recipes.ErrVoted)
	for _, s := range p.sites {
		f.decision(get(f, s.Wait), true, "")
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
	f.is(p.sites[1].Vote(f.ctx, ""), recipes.ErrInvalid)
}
