package line

import (
	"errors"
	"testing"

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
