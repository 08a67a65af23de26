package recipestest

import (
	"context"
	"fmt"
	"strings"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// party is a transaction with its sites. Each site has its own session.
type party struct {
	f           *fixture
	coordinator recipes.Client
	tx          recipes.Transaction
	sessions    []recipes.Client
	sites       []recipes.Site
}

func (f *fixture) transaction(s recipes.Recipes, v recipes.Variant) recipes.Transaction {
	f.Helper()
	return must.Get(s.Transaction(f.path("app", "Tx"), recipes.TransactionConfig{Variant: v}))(f)
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
		site := must.Get(f.transaction(s, "").Join(f.ctx, name))(f)
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
		if v != "" {
			p.f.must(p.sites[i].Vote(p.f.ctx, v))
		}
	}
}

type awaited = pending[recipes.Decision]

// wait has the coordinator and all sites wait in the background. It returns when each has read the
// transaction.
func (p *party) wait() []*awaited {
	p.f.Helper()
	calls := []*awaited{start(p.f, func() (recipes.Decision, error) { return p.tx.Coordinate(p.f.ctx) })}
	for _, s := range p.sites {
		calls = append(calls, start(p.f, func() (recipes.Decision, error) { return s.Wait(p.f.ctx) }))
	}
	for _, s := range append([]recipes.Client{p.coordinator}, p.sessions...) {
		p.f.reach(s, func(c recipes.Stats) bool { return c.ByKind["exists"] > 0 })
	}
	return calls
}

func (p *party) decided(calls []*awaited, commit bool, reason string) {
	p.f.Helper()
	for _, c := range calls {
		p.f.decision(c.must(p.f), commit, reason)
	}
}

func (f *fixture) decision(d recipes.Decision, commit bool, reason string) {
	f.Helper()
	if d.Commit != commit || !strings.Contains(d.Reason, reason) {
		f.Errorf("decided %+v; want commit %v, because of %q", d, commit, reason)
	}
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
		recovers: func(f *fixture, _ recipes.Client, s transactionSubject) {
			f.must(s.site.Vote(f.ctx, commits))
			f.must(errOf(s.party.tx.Coordinate(f.ctx)))
			f.must(errOf(s.site.Wait(f.ctx)))
			f.must(s.site.Done(f.ctx))
			f.awaitNode(f.path("app", "Tx"), false)
		},
	}.tests(string(v) + "/")
}

func transactionWaitTests() []variantTest {
	return []variantTest{
		{"a lost connection does not end a wait", func(f *fixture, v recipes.Variant) {
			p := f.party(v, 2)
			calls := p.wait()
			for _, s := range append([]recipes.Client{p.coordinator}, p.sessions[0]) {
				f.sever(s)
			}
			p.vote(silent, commits)
			calls[1].blocked(f)
			for _, s := range append([]recipes.Client{p.coordinator}, p.sessions[0]) {
				f.restore(s)
			}
			p.vote(commits)
			p.decided(calls, true, "")
		}},
		{"the loss of the session ends a wait", func(f *fixture, v recipes.Variant) {
			p := f.party(v, 2)
			calls := p.wait()
			for i, s := range []recipes.Client{p.coordinator, p.sessions[0]} {
				f.must(s.Close(f.ctx))
				f.is(calls[i].failure(f), recipes.ErrSessionLost, recipes.ErrClosed)
			}
			f.is(errOf(p.tx.Abort(f.ctx, "")), recipes.ErrSessionLost)
			must.Get(f.transaction(f.open(), "").Abort(f.ctx, "no coordinator"))(f)
			d := calls[2].must(f)
			f.failIf(d.Commit, "decided %+v", d)
		}},
		{"the end of the context ends a wait", func(f *fixture, v recipes.Variant) {
			p := f.party(v, 2)
			f.is(errOf(p.sites[0].Wait(f.briefly())), context.DeadlineExceeded)
			f.is(errOf(p.tx.Coordinate(f.briefly())), context.DeadlineExceeded)
			p.vote(commits, commits)
			f.decision(get(f, p.tx.Coordinate), true, "")
		}},
	}
}
