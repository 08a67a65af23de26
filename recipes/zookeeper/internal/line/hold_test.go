package line

import (
	"errors"
	"fmt"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/testing/ensembletest"
	"github.com/zkrecipes/zkrecipes/internal/testing/leaktest"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

// A transaction that grants another contender deletes this contender's znode. The watch on it
// may fire before the transaction is answered. The hold then ends as released, not as removed.
func TestAYieldingGrantIsNotRemoved(t *testing.T) {
	srv := must.Get(zkserver.Listen(zkserver.Config{}))(t)
	defer srv.Close()
	s := must.Get(session.Open(t.Context(), recipes.SessionConfig{Servers: []string{srv.Addr()}}, nil))(t)
	defer s.Close(t.Context())
	for _, outcome := range []error{nil, recipes.ErrUnknownOutcome} {
		g := must.Get(NewRevocable(t.Context(), s, "/line/contender", 1, nil))(t)
		err := g.Yield(func() error {
			g.watchOwn(t.Context()) // finds no znode
			return outcome
		})
		if !errors.Is(err, outcome) || !errors.Is(g.Err(), recipes.ErrReleased) {
			t.Errorf("yielded with %v, and ended with %v", err, g.Err())
		}
	}
}

func TestMain(m *testing.M) { leaktest.Main(ensembletest.Owner{Tests: m}) }

func TestBusyPathsAreRememberedWithinBounds(t *testing.T) {
	var c Busy
	for i := range 3 * maxBusy {
		path := fmt.Sprintf("/job/%d", i)
		c.note(path, true)
		if !c.at(path) || c.at("/other") {
			t.Fatalf("the last wait at %s is not remembered", path)
		}
	}
	if n := len(c.paths); n > maxBusy {
		t.Errorf("%d paths are remembered; the limit is %d", n, maxBusy)
	}
	c.note("/job/0", true)
	if c.note("/job/0", false); c.at("/job/0") {
		t.Error("a path without waiters is remembered")
	}
}
