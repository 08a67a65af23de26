package session_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/testing/ensembletest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
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

// A server refuses some parents for reasons of their own, and says so with the same code
// as one that knows no containers. It is asked for containers all the same.
func TestABadParentLeavesTheContainers(t *testing.T) {
	srv, ctx := embedded(t), bounded(t)
	s := open(t, to(srv))
	if err := s.Ensure(ctx, "/a\x01"); !errors.Is(err, recipes.ErrInvalid) { // recipes refuse such a path
		t.Fatalf("a parent that no server makes: %v", err)
	}
	if err := s.Ensure(ctx, "/a"); err != nil {
		t.Fatal(err)
	}
	if sent := s.Counters().ByKind; sent["multi"] != 2 || sent["create"] != 1 {
		t.Errorf("%d containers and %d plain znodes were asked for; want 2 and 1, the bad one", sent["multi"], sent["create"])
	}
}

// Any other refusal is the answer. Whoever may not make a container may not make a plain
// znode either, and a server that throttles has not said that it knows no containers.
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

// A server without containers refuses one before it looks whether there is such a znode.
// That a plain znode meets one is as good as if it was made.
func TestAServerWithoutContainersIsAskedOnce(t *testing.T) {
	srv, err := zkserver.Listen(zkserver.Config{Before35: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { srv.Close() })
	ctx := bounded(t)
	for _, who := range []string{"who makes it", "who finds it"} {
		s := open(t, to(srv))
		for range 3 {
			if err := s.Ensure(ctx, "/a"); err != nil {
				t.Fatal(err)
			}
		}
		if sent := s.Counters().ByKind; sent["multi"] != 1 || sent["create"] != 3 {
			t.Errorf("%s asks for %d containers and %d plain znodes; want 1 and 3", who, sent["multi"], sent["create"])
		}
	}
}
