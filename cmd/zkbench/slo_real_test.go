package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/ensemble/ensembletest"
)

// TestObjectiveOnARealServer has holds of 50 ms bound the rate to twenty a second,
// whatever else the machine does.
func TestObjectiveOnARealServer(t *testing.T) {
	e := ensembletest.Start(t, ensembletest.Quick(1))
	var stdout, stderr bytes.Buffer
	code := command{stdout: &stdout, stderr: &stderr, transports: transports}.run(t.Context(), []string{
		"slo", "-servers", e.Connect(), "-over", "rate", "-under", "200ms", "-hold", "50ms", "-arrivals", "constant",
		"-contenders", "4", "-from", "2", "-to", "64", "-precision", "0.5", "-duration", "500ms", "-warmup", "10ms",
	})
	if code != exitOK {
		t.Fatalf("exit code %d:\n%s\n%s", code, stdout.String(), stderr.String())
	}
	var pass, fail int
	for line := range strings.Lines(stdout.String()) {
		_, _ = fmt.Sscanf(line, "last pass: rate %d", &pass)
		_, _ = fmt.Sscanf(line, "first fail: rate %d", &fail)
	}
	if pass < 1 || fail <= pass || pass > 40 {
		t.Errorf("last pass %d, first fail %d:\n%s", pass, fail, stdout.String())
	}
}
