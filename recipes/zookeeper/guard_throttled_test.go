package zookeeper_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// A grant has one guard, however often the look at its place is refused after the guard
// was made. The guard goes with the grant.
func TestGuardsDoNotPileUp(t *testing.T) {
	srv, ctx := embedded(t), bounded(t)
	s := open(t, srv)
	hold := must[recipes.Hold](t)(must[recipes.Lock](t)(s.Lock("/line", recipes.LockConfig{Strategy: recipes.Handoff})).Acquire(ctx))
	guards := func() (n int) {
		for _, node := range srv.Tree() {
			if strings.Contains(node.Path, "-guard-") {
				n++
			}
		}
		return n
	}
	srv.SetFault(func(r zkserver.Request) zkserver.Fault {
		return zkserver.Fault{Throttle: r.Op == zkserver.OpExists}
	})
	for range 5 {
		if err := hold.Write(ctx, recipes.Create("/x", nil)); !errors.Is(err, recipes.ErrThrottled) {
			t.Errorf("a write whose look is throttled: %v", err)
		}
	}
	if n := guards(); n != 1 {
		t.Errorf("%d guards after five refused writes", n)
	}
	srv.SetFault(nil)
	for _, path := range []string{"/y", "/z"} {
		if err := hold.Write(ctx, recipes.Create(path, nil)); err != nil {
			t.Error(err)
		}
	}
	if n := guards(); n != 1 {
		t.Errorf("%d guards after the writes", n)
	}
	if err := hold.Release(ctx); err != nil {
		t.Fatal(err)
	}
	if n := guards(); n != 0 {
		t.Errorf("%d guards are left", n)
	}
}
