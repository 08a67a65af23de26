package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/ensemble/ensembletest"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// TestFailoversOnARealServer cuts holders off; the run fails if one of them does not
// know that it lost before the next one is granted.
func TestFailoversOnARealServer(t *testing.T) {
	e := ensembletest.Start(t, ensembletest.Quick(1))
	var stdout, stderr bytes.Buffer
	code := command{stdout: &stdout, stderr: &stderr, transports: transports}.run(t.Context(), []string{
		"run", "-servers", e.Connect(), "-workload", "failover", "-recipe", "lock,election", "-contenders", "5",
		"-strategy", (&list[recipes.Strategy]{values: recipes.Strategies()}).String(), "-count", "1", "-session-timeout", "2s",
	})
	if want := 2 * len(recipes.Strategies()); code != exitOK || strings.Count(stdout.String(), "\nBenchmark") != want {
		t.Fatalf("exit code %d; want %d results:\n%s\n%s", code, want, stdout.String(), stderr.String())
	}
}
