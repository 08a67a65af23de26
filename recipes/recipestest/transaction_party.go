package recipestest

import (
	"fmt"
	"strings"

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
