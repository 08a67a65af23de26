package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/testing/ensembletest"
)

// TestServerThatAllowsTooFewConnections says what stands in the way before anything
// is run, and leaves nothing half-written.
func TestServerThatAllowsTooFewConnections(t *testing.T) {
	t.Parallel()
	cfg := ensembletest.Quick(1)
	cfg.Properties = map[string]string{"maxClientCnxns": "10"}
	e := ensembletest.Start(t, cfg)
	file := filepath.Join(t.TempDir(), "records.jsonl")
	code, stdout, stderr := whole(t, "run", "-servers", e.Connect(), "-strategy", "predecessor", "-contenders", "30", "-count", "1", "-record", file)
	if want := "30 sessions are needed at once, and the servers allow 10 connections"; code != exitUsage || !strings.Contains(stderr, want) {
		t.Errorf("exit code %d; want %d and %q:\n%s", code, exitUsage, want, stderr)
	}
	if files, _ := filepath.Glob(file + "*"); len(files) > 0 || stdout != "" {
		t.Errorf("%v was left, and on stdout\n%s", files, stdout)
	}
}
