package main

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/exit"
	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/plan"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// TestHandoffHasTheRoundTripsThatThePlanAssumes measures handoffs over a slow network. A handoff
// cannot be faster than its round trips. The fastest one exceeds them by less than a round trip,
// unless the machine is busy all the time. That excess does not grow with the round trip, so the
// test tries longer round trips. Package plan assumes these numbers for records at a single
// delay.
func TestHandoffHasTheRoundTripsThatThePlanAssumes(t *testing.T) {
	for _, strategy := range recipes.Strategies() {
		t.Run(string(strategy), func(t *testing.T) {
			t.Parallel()
			want := plan.RoundTrips(strategy)
			for rtt := 150 * time.Millisecond; ; rtt *= 2 {
				fastest := fastestHandoff(t, strategy, rtt)
				got := int(fastest / (rtt - rtt/50)) // the histogram rounds
				if got == want {
					return
				}
				if got < want || rtt > time.Second {
					t.Fatalf("the fastest handoff takes %v, %d round trips of %v; want %d", fastest, got, rtt, want)
				}
			}
		})
	}
}

func fastestHandoff(t *testing.T, strategy recipes.Strategy, rtt time.Duration) time.Duration {
	t.Helper()
	server := zktest.Embedded(t)
	file := filepath.Join(t.TempDir(), "records.jsonl")
	code, _, stderr := whole(t, "run", "-servers", server.Addr(), "-delay", rtt.String(), "-recipe", "lock", "-strategy", string(strategy),
		"-contenders", "6", "-count", "1", "-record", file)
	if code != exit.OK {
		t.Fatalf("exit code %d\n%s", code, stderr)
	}
	run := must.Get(readRuns(file))(t)
	return time.Duration(run[0].Records[0].Handoff.Min())
}
