package recipestest

import (
	"slices"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// electionTests tests what an election promises beyond placeTests and lineTests.
func electionTests() []test {
	return slices.Concat([]test{
		{"leader/the first candidate leads, with its proposal", leaderIsFirst},
		{"leader/a call without a leader is ErrNoLeader", noLeader},
		{"leader/the next candidate leads after the leader's session ends, and has not acknowledged", nextLeadsAfterLoss},
	}, acknowledgeTests(), observeTests())
}

func (f *fixture) election(s recipes.Recipes, path string) recipes.Election {
	f.Helper()
	e, err := s.Election(path, recipes.ElectionConfig{})
	f.must(err)
	return e
}

// lead wins an election without other candidates.
func (f *fixture) lead(s recipes.Recipes, path string) recipes.Leadership {
	f.Helper()
	l, err := f.election(s, path).Campaign(f.ctx, []byte("proposal"))
	f.must(err)
	return l
}

func leaderIsFirst(f *fixture) {
	s := f.open()
	l, err := f.election(s, f.path("a")).Campaign(f.ctx, []byte("my address"))
	f.must(err)
	electionKind.waits(f, f.open(), f.path("a"))
	got := get(f, f.election(f.open(), f.path("a")).Leader)
	if got.Znode != l.Znode() || got.Token != l.Token() || got.SessionID != s.ID() || string(got.Data) != "my address" {
		f.Errorf("leader %+v; want %s with token %d", got, l.Znode(), l.Token())
	}
	if got.None() || got.Acknowledged || len(got.Acknowledgement) != 0 {
		f.Errorf("leader %+v; want it not to have acknowledged", got)
	}
}

func noLeader(f *fixture) {
	e := f.election(f.open(), f.path("a"))
	f.is(errOf(e.Leader(f.ctx)), recipes.ErrNoLeader)
	f.create(f.path("a", "not a candidate"), "")
	_, err := e.Leader(f.ctx)
	f.is(err, recipes.ErrNoLeader)
	f.isNot(err, recipes.ErrSessionLost, recipes.ErrNotHeld)
}

func nextLeadsAfterLoss(f *fixture) {
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
}
