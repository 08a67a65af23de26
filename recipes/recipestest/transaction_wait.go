package recipestest

import (
	"context"

	"github.com/zkrecipes/zkrecipes/recipes"
)

func waitReconnects(f *fixture, v recipes.Variant) {
	p := f.party(v, 2)
	calls := p.wait()
	for _, s := range append([]recipes.Client{p.coordinator}, p.sessions[0]) {
		f.sever(s)
	}
	p.vote(silent, commits)
	calls[1].blocked(f)
	for _, s := range append([]recipes.Client{p.coordinator}, p.sessions[0]) {
		f.relay(s).Restore()
	}
	p.vote(commits)
	p.decided(calls, true, "")
}

func waitSessionLost(f *fixture, v recipes.Variant) {
	p := f.party(v, 2)
	calls := p.wait()
	for i, s := range []recipes.Client{p.coordinator, p.sessions[0]} {
		f.must(s.Close(f.ctx))
		f.is(calls[i].failure(f), recipes.ErrSessionLost, recipes.ErrClosed)
	}
	f.is(errOf(p.tx.Abort(f.ctx, "")), recipes.ErrSessionLost)
	_, err := f.transaction(f.open(), "").Abort(f.ctx, "no coordinator")
	f.must(err)
	if d := calls[2].must(f); d.Commit {
		f.Errorf("decided %+v", d)
	}
}

func waitCancelled(f *fixture, v recipes.Variant) {
	p := f.party(v, 2)
	f.is(errOf(p.sites[0].Wait(f.briefly())), context.DeadlineExceeded)
	f.is(errOf(p.tx.Coordinate(f.briefly())), context.DeadlineExceeded)
	p.vote(commits, commits)
	f.decision(get(f, p.tx.Coordinate), true, "")
}

// transactionSubject is a transaction with one site. The calls use the session of the site.
type transactionSubject struct {
	tx    recipes.Transaction
	site  recipes.Site
	party *party
}

// transactionContextTests tests every call of a transaction and a site.
func transactionContextTests(v recipes.Variant) []test {
	return endingTests[transactionSubject]{
		calls: []call[transactionSubject]{
			{"Begin", func(ctx context.Context, s transactionSubject) error { return s.tx.Begin(ctx, nil, "1") }},
			{"Coordinate", func(ctx context.Context, s transactionSubject) error { return errOf(s.tx.Coordinate(ctx)) }},
			{"Abort", func(ctx context.Context, s transactionSubject) error { return errOf(s.tx.Abort(ctx, "")) }},
			{"Join", func(ctx context.Context, s transactionSubject) error { return errOf(s.tx.Join(ctx, "1")) }},
			{"Status", func(ctx context.Context, s transactionSubject) error { return errOf(s.tx.Status(ctx)) }},
			{"Forget", func(ctx context.Context, s transactionSubject) error { return s.tx.Forget(ctx) }},
			{"Vote", func(ctx context.Context, s transactionSubject) error { return s.site.Vote(ctx, commits) }},
			{"Wait", func(ctx context.Context, s transactionSubject) error { return errOf(s.site.Wait(ctx)) }},
			{"Done", func(ctx context.Context, s transactionSubject) error { return s.site.Done(ctx) }},
		},
		endings: []ending{unanswered, severed},
		begin: func(f *fixture) (recipes.Client, transactionSubject) {
			p := f.party(v, 1)
			return p.sessions[0], transactionSubject{f.transaction(p.sessions[0], v), p.sites[0], p}
		},
		outcome: func(f *fixture, e ending, _ string, err error) {
			if e == severed {
				f.unsent(err)
			}
		},
		recovers: func(f *fixture, _ recipes.Client, s transactionSubject) {
			f.must(s.site.Vote(f.ctx, commits))
			f.must(errOf(s.party.tx.Coordinate(f.ctx)))
			f.must(errOf(s.site.Wait(f.ctx)))
			f.must(s.site.Done(f.ctx))
			f.awaitNode(f.path("app", "Tx"), false)
		},
	}.tests(string(v) + "/")
}
