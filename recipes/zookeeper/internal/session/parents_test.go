package session_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/testing/ensembletest"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// A server answers create of a container with the result of create2. A client that took that
// for a refusal would also create a plain znode.
func TestAContainerIsAskedForOnce(t *testing.T) {
	check := func(t *testing.T, addr string) {
		ctx := bounded(t)
		s := open(t, recipes.SessionConfig{Servers: []string{addr}})
		top := fmt.Sprintf("/asked-once-%x", s.ID())
		ensure := func(path string) recipes.Stats {
			t.Helper()
			must.Do(t, s.Ensure(ctx, path))
			must.Get(s.Stat(ctx, path))(t)
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

// A server refuses some parents with the same code as a server that has no containers. The
// session keeps creating containers nevertheless.
func TestABadParentLeavesTheContainers(t *testing.T) {
	srv, ctx := embedded(t), bounded(t)
	s := open(t, to(srv))
	if err := s.Ensure(ctx, "/a\x01"); !errors.Is(err, recipes.ErrInvalid) { // recipes refuse such a path
		t.Fatalf("a parent that no server creates: %v", err)
	}
	must.Do(t, s.Ensure(ctx, "/a"))
	if sent := s.Counters().ByKind; sent["multi"] != 2 || sent["create"] != 1 {
		t.Errorf("%d containers and %d plain znodes were asked for; want 2 and 1, the bad one", sent["multi"], sent["create"])
	}
}

// Any other refusal is the result. A session that may not create a container may not create a
// plain znode either, and a server that throttles may support containers.
func TestARefusedContainerIsNotReplaced(t *testing.T) {
	srv, ctx := embedded(t), bounded(t)
	s := open(t, to(srv))
	srv.SetFault(func(r zkserver.Request) zkserver.Fault { return zkserver.Fault{Throttle: r.Op == zkserver.OpMulti} })
	if err := s.Ensure(ctx, "/a"); !errors.Is(err, recipes.ErrThrottled) {
		t.Errorf("from a busy server: %v", err)
	}
	if sent := s.Counters().ByKind; sent["multi"] != 1 || sent["create"] != 0 {
		t.Errorf("%d containers and %d plain znodes were asked for; want 1 and none", sent["multi"], sent["create"])
	}
}

// A server without containers refuses one before it checks whether the znode exists. An
// existing znode counts as success for the plain creation.
func TestAServerWithoutContainersIsAskedOnce(t *testing.T) {
	srv := must.Get(zkserver.Listen(zkserver.Config{Like: zkserver.Release34}))(t)
	t.Cleanup(func() { srv.Close() })
	ctx := bounded(t)
	for _, who := range []string{"the creator", "a session that finds it"} {
		s := open(t, to(srv))
		for range 3 {
			must.Do(t, s.Ensure(ctx, "/a"))
		}
		if sent := s.Counters().ByKind; sent["multi"] != 1 || sent["create"] != 3 {
			t.Errorf("%s asks for %d containers and %d plain znodes; want 1 and 3", who, sent["multi"], sent["create"])
		}
	}
}
