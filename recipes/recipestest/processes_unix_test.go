//go:build unix

package recipestest_test

import (
	"context"
	"errors"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/zkrecipes/zkrecipes/internal/testing/ensembletest"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// TestPluginFrozen: a plugin that stands still cannot tell anything. So the host has
// to lose the hold by its own clock, before another contender can be granted.
func TestPluginFrozen(t *testing.T) {
	t.Parallel()
	const timeout = 2 * time.Second
	addrs := ensembletest.Shared(t).Addrs()
	path := "/plugin-frozen-" + uuid.NewString()
	p := launch(t)
	s := open(t, p.Open, timeout, addrs...)
	h, next := acquire(t, s, path), wait(t, open(t, zookeeper.Open, 0, addrs...), path)
	lost := h.Done()
	if err := syscall.Kill(p.PID(), syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	frozen := time.Now()
	await(t, next.done, "the grant of the next")
	if next.err != nil {
		t.Fatal(next.err)
	}
	select {
	case <-lost:
	default:
		t.Error("the next is granted, and the hold is not lost")
	}
	if err := h.Err(); !errors.Is(err, recipes.ErrNotHeld) || !errors.Is(err, recipes.ErrSessionLost) {
		t.Errorf("lost by %v", err)
	}
	t.Logf("lost by %v; free after %v", h.Err(), next.at.Sub(frozen))

	// The host ends it all the same.
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_ = p.Close(ctx)
	await(t, p.Exited(), "the plugin's end")
}
