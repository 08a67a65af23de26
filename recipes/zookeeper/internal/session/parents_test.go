package session_test

import (
	"fmt"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/ensemble/ensembletest"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// The server answers the creation of a container with the result of create2, though it
// was asked for create. Whoever takes that for a refusal asks for a plain znode too.
func TestAContainerIsAskedForOnce(t *testing.T) {
	check := func(t *testing.T, addr string) {
		ctx := bounded(t)
		s := open(t, recipes.SessionConfig{Servers: []string{addr}})
		top := fmt.Sprintf("/asked-once-%x", s.ID())
		ensure := func(path string) recipes.Stats {
			t.Helper()
			if err := s.Ensure(ctx, path); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Stat(ctx, path); err != nil {
				t.Fatal(err)
			}
			return s.Counters()
		}
		for _, step := range []struct {
			path  string
			multi int64 // requests so far
		}{
			{top, 1},
			{top, 2}, // it is there
			{top + "/a/b", 5},
		} {
			sent := ensure(step.path)
			if multi, create := sent.ByKind["multi"], sent.ByKind["create"]; multi != step.multi || create != 0 {
				t.Errorf("%s: so far %d containers and %d plain znodes were asked for; want %d and none", step.path, multi, create, step.multi)
			}
		}
		if err := s.DeleteOnce(ctx, top+"/a/b", recipes.AnyVersion); err != nil { // the server removes the others
			t.Error(err)
		}
	}
	t.Run("embedded", func(t *testing.T) { check(t, embedded(t).Addr()) })
	t.Run("real", func(t *testing.T) { check(t, ensembletest.Shared(t).Addrs()[0]) })
}
