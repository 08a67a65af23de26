package line

import (
	"errors"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

// A transaction that grants another contender deletes this contender's znode. The watch on it
// may fire before the transaction is answered. The hold then ends as released, not as removed.
func TestAYieldingGrantIsNotRemoved(t *testing.T) {
	srv, err := zkserver.Listen(zkserver.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	s, err := session.Open(t.Context(), recipes.SessionConfig{Servers: []string{srv.Addr()}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(t.Context())
	for _, outcome := range []error{nil, recipes.ErrUnknownOutcome} {
		g, err := NewRevocable(t.Context(), s, "/line/contender", 1, nil)
		if err != nil {
			t.Fatal(err)
		}
		err = g.Yield(func() error {
			g.watchOwn(t.Context()) // finds no znode
			return outcome
		})
		if !errors.Is(err, outcome) || !errors.Is(g.Err(), recipes.ErrReleased) {
			t.Errorf("yielded with %v, and ended with %v", err, g.Err())
		}
	}
}
