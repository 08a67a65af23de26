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

// TestPluginFrozen: a frozen plugin cannot report a loss. So the host must lose the hold by its
// own deadline, before another contender can be granted.
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
	await(t, next.done, "the next grant")
	if next.err != nil {
		t.Fatal(next.err)
	}
	select {
	case <-lost:
	default:
		t.Error("the next contender was granted before the hold was lost")
	}
	if err := h.Err(); !errors.Is(err, recipes.ErrNotHeld) || !errors.Is(err, recipes.ErrSessionLost) {
		t.Errorf("lost by %v", err)
	}
	t.Logf("lost by %v; free after %v", h.Err(), next.at.Sub(frozen))

	// The host can still end the plugin.
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_ = p.Close(ctx)
	await(t, p.Exited(), "the exit of the plugin")
}
