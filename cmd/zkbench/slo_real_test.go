package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/testing/ensembletest"
	"github.com/zkrecipes/zkrecipes/internal/testing/testall"
)

// TestObjectiveOnARealServer has holds bound the rate, whatever else the machine does:
// those of 50 ms to twenty a second. A machine that is too busy for any pass is asked
// for half the rates in twice the times. How late zkbench starts is of no interest.
func TestObjectiveOnARealServer(t *testing.T) {
	testall.Require(t)
	t.Parallel()
	e := ensembletest.Shared(t)
	for slower := 1; slower <= 64; slower *= 2 {
		times := func(d time.Duration) string { return (time.Duration(slower) * d).String() }
		var out, errs bytes.Buffer
		zkbench := command{stdout: &out, stderr: &errs, transports: transports, terminal: terminal, check: allValid}
		code := zkbench.run(t.Context(), []string{
			"slo", "-servers", e.Connect(), "-over", "rate", "-under", times(200 * time.Millisecond), "-hold", times(50 * time.Millisecond),
			"-arrivals", "constant", "-contenders", "4", "-from", fmt.Sprint(max(1, 2/slower)), "-to", "64", "-precision", "0.5",
			"-duration", times(500 * time.Millisecond), "-warmup", "10ms",
		})
		stdout, stderr := out.String(), errs.String()
		var pass, fail int
		for line := range strings.Lines(stdout) {
			_, _ = fmt.Sscanf(line, "last pass: rate %d", &pass)
			_, _ = fmt.Sscanf(line, "first fail: rate %d", &fail)
		}
		if pass == 0 {
			t.Logf("%d times slower: exit code %d:\n%s\n%s", slower, code, stdout, stderr)
			continue
		}
		if code != exitOK || fail <= pass || pass > max(1, 40/slower) {
			t.Errorf("%d times slower: exit code %d, last pass %d, first fail %d:\n%s\n%s", slower, code, pass, fail, stdout, stderr)
		}
		return
	}
	t.Error("no pass, however slow the machine may be")
}
