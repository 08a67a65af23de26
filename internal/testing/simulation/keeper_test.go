package simulation

import (
	"flag"
	"slices"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/zkserver"
)

var keeperSeeds = flag.Int("keeper-seeds", 0, "number of seeds to simulate on each Keeper; 0 means a few")

// notOnKeeper are the scenarios that cannot hold on what is played as ClickHouse Keeper.
func notOnKeeper(sc scenario) string {
	if sc.dies {
		return "a session cannot be resumed, so it ends with its plugin"
	}
	return ""
}

// TestSimulationOfKeeper simulates what is published about ClickHouse Keeper. It is not known how a
// Keeper behaves under these faults.
func TestSimulationOfKeeper(t *testing.T) {
	possible := slices.DeleteFunc(slices.Clone(allScenarios), func(sc scenario) bool { return notOnKeeper(sc) != "" })
	n := *keeperSeeds
	if n == 0 {
		n = 15
	}
	for _, like := range zkserver.Keepers() {
		t.Run(like.String(), func(t *testing.T) {
			sum := &summary{turns: make(map[string]int), faults: make(map[string]int)}
			for i := range n {
				seed := *first + uint64(i)
				sc := possible[seed%uint64(len(possible))]
				sc.like = like
				r := simulateScenario(t, sc, seed)
				sum.add(r)
				for _, v := range r.Violations {
					t.Errorf("seed %d (%s): %s\nreplay: go test ./internal/testing/simulation -run 'TestSimulationOfKeeper/%s' -first %d -keeper-seeds 1 -v",
						r.Seed, r.Scenario, v, like, r.Seed)
				}
				if n == 1 {
					t.Logf("trace:\n%s", r.Trace)
				}
			}
			t.Log(sum)
		})
	}
}
