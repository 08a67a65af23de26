package main

import (
	"strings"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/testing/ensembletest"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// TestFailoversOnARealServer cuts holders off; the run fails if one of them does not
// know that it lost before the next one is granted.
func TestFailoversOnARealServer(t *testing.T) {
	t.Parallel()
	e := ensembletest.Shared(t)
	code, stdout, stderr := withLivingSessions(t, func(timeout string) []string {
		return []string{
			"run", "-servers", e.Connect(), "-workload", "failover", "-recipe", "lock,election", "-contenders", "5",
			"-strategy", (&list[recipes.Strategy]{values: recipes.Strategies()}).String(), "-count", "1", "-session-timeout", timeout,
		}
	})
	if want := 2 * len(recipes.Strategies()); code != exitOK || strings.Count(stdout, "\nBenchmark") != want {
		t.Fatalf("exit code %d; want %d results:\n%s\n%s", code, want, stdout, stderr)
	}
}

// withLivingSessions runs zkbench with sessions that end soon, so that failovers are
// short, and with twice the session timeout when the machine is too busy to keep them
// alive.
func withLivingSessions(t *testing.T, args func(timeout string) []string) (code int, stdout, stderr string) {
	t.Helper()
	for timeout := time.Second; ; timeout *= 2 {
		code, stdout, stderr = whole(t, args(timeout.String())...)
		if lost := strings.Contains(stderr, recipes.ErrSessionLost.Error()); code != exitFailed || !lost || timeout > 30*time.Second {
			return code, stdout, stderr
		}
		t.Logf("with sessions of %v: %s", timeout, stderr)
	}
}
