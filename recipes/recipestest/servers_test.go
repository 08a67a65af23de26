package recipestest

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/testing/ensembletest"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// TestEnsembleLeaderKilled: while contenders hold and wait, the ensemble's leader is killed. All
// grants and places are kept, because the sessions outlive the election.
func TestEnsembleLeaderKilled(t *testing.T) {
	t.Parallel()
	e := ensembletest.Start(t, ensembletest.Quick(3))
	f := newFixture(t, Env{Open: zookeeper.Open, Servers: func(testing.TB) []string { return e.Addrs() }})
	var sessions []recipes.Client
	for range 6 {
		sessions = append(sessions, f.open(withTimeout(30*time.Second)))
	}
	g := lockKind.granted(f, sessions[0], f.path("a"))
	f.held(g)
	var waiters []*waitingCall[grant]
	for _, s := range sessions[1:] {
		waiters = append(waiters, lockKind.waits(f, s, f.path("a")))
	}
	leader := must.Get(e.Leader(f.ctx))(f)
	f.must(leader.Kill())
	must.Get(e.Leader(f.ctx))(f)
	for i, w := range waiters {
		for _, later := range waiters[i:] {
			later.blocked(f)
		}
		err := g.Write(f.ctx)
		for errors.Is(err, recipes.ErrUnknownOutcome) { // the connection can be lost during a write
			err = g.Write(f.ctx)
		}
		f.must(err)
		f.must(g.Release(f.ctx))
		f.lost(g, recipes.ErrReleased)
		next := w.must(f)
		if next.Token() <= g.Token() {
			f.Errorf("token %d after %d", next.Token(), g.Token())
		}
		g = next
		f.held(g)
	}
	for _, s := range sessions {
		f.must(s.Err())
	}
}

// A group that the page of versions lacks was tested on one version only.
func TestThePageOfVersionsHasEachGroup(t *testing.T) {
	page := string(must.Get(os.ReadFile("../../docs/servers.md"))(t))
	for _, g := range groups() {
		if !strings.Contains(page, "\n| contract: "+g.name+" | ") {
			t.Errorf("docs/servers.md lacks the group %q: run .ci/suite servers", g.name)
		}
	}
}
