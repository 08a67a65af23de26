package main

import (
	"flag"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/exit"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/unit"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

var update = flag.Bool("update", false, "record testdata/results/counts.txt again")

// recordedCounts has the costs of each strategy that reviewers have accepted.
var recordedCounts = filepath.Join("..", "..", "testdata", "results", "counts.txt")

// countStrategies writes the costs of a handoff by each strategy to a file. The counts of each
// trial are exact, but for a herd only in lines of one and two: in a longer line, a contender
// that lists late has less to read.
func countStrategies(t *testing.T, open recipes.Opener, file string) {
	t.Helper()
	var all strings.Builder
	for _, args := range []string{"-strategy predecessor,handoff -contenders 1,2,10,50", "-strategy herd -contenders 1,2"} {
		code, stdout, stderr := zkbench(t.Context(), open, append([]string{"run", "-recipe", "lock,election", "-count", "1"}, strings.Fields(args)...)...)
		if code != exit.OK {
			t.Fatalf("zkbench run %s: exit code %d\n%s", args, code, stderr)
		}
		all.WriteString(onlyCounts(stdout))
	}
	must.Do(t, os.WriteFile(file, []byte(all.String()), 0o644))
}

// onlyCounts drops the times of results, which differ from run to run.
func onlyCounts(results string) string {
	var counts strings.Builder
	for line := range strings.Lines(results) {
		fields := strings.Fields(line)
		if !strings.HasPrefix(line, "Benchmark") {
			continue
		}
		kept := fields[:2]
		for i := 2; i+1 < len(fields); i += 2 {
			switch fields[i+1] {
			case unit.Reads, unit.Writes, unit.Syncs, unit.Events, unit.Bytes, unit.Fallbacks, unit.Asked:
				kept = append(kept, fields[i], fields[i+1])
			}
		}
		counts.WriteString(strings.Join(kept, " ") + "\n")
	}
	return counts.String()
}

// TestNoStrategyCostsMoreThanRecorded is the gate: it fails if a handoff by a strategy sends one
// more request, or receives one more event or byte. A change that is meant to cost more records
// the new costs with -update, so that a reviewer sees them.
func TestNoStrategyCostsMoreThanRecorded(t *testing.T) {
	if *update {
		countStrategies(t, zookeeper.Open, recordedCounts)
	}
	now := filepath.Join(t.TempDir(), "now.txt")
	countStrategies(t, zookeeper.Open, now)
	code, stdout, stderr := whole(t, "compare", "-exact", recordedCounts, now)
	if code != exit.OK || !strings.Contains(stdout, "0 better, 0 worse of ") || strings.Contains(stdout, "warning") {
		t.Errorf("exit code %d; a change that is meant to cost this is recorded by -update\n%s%s", code, stdout, stderr)
	}
	sendNothingBeforeTheGrant(t, now)
}

// TestAHandoffSendsNothingBeforeTheGrant checks a promise that no recording may change: in a busy
// line, nothing is sent between the event of a release and the grant.
func TestAHandoffSendsNothingBeforeTheGrant(t *testing.T) {
	sendNothingBeforeTheGrant(t, recordedCounts)
}

func sendNothingBeforeTheGrant(t *testing.T, files ...string) {
	t.Helper()
	for _, file := range files {
		counts := must.Get(os.ReadFile(file))(t)
		handoffs := 0
		for line := range strings.Lines(string(counts)) {
			if !strings.Contains(line, "strategy=handoff") || strings.Contains(line, "contenders=1/") { // a single contender never waits for a release
				continue
			}
			handoffs++
			fields := strings.Fields(line)
			for i := 2; i+1 < len(fields); i += 2 {
				switch n, err := strconv.ParseFloat(fields[i], 64); fields[i+1] {
				case unit.Reads, unit.Syncs, unit.Asked, unit.Fallbacks:
					if err != nil || n != 0 {
						t.Errorf("%s: %s %s of a handoff: %s", filepath.Base(file), fields[i], fields[i+1], fields[0])
					}
				}
			}
		}
		if handoffs == 0 {
			t.Errorf("%s has no handoff", file)
		}
	}
}
