package bench_test

import (
	"slices"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/bench"
	"github.com/zkrecipes/zkrecipes/bench/load"
	"github.com/zkrecipes/zkrecipes/internal/testing/fake"
	"github.com/zkrecipes/zkrecipes/internal/testing/race"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// TestHarnessCostsLittle compares the turns of a lock that does nothing with the
// fastest real ones, those on a server in the same process. It takes the best of
// several trials of each, which a busy machine spoils last.
func TestHarnessCostsLittle(t *testing.T) {
	server := embedded(t)
	fastest := func(open recipes.Opener) time.Duration {
		e := experiment(new(fake.World))
		e.Recipes, e.Workloads, e.Strategies = []load.Recipe{load.Lock}, []load.Workload{load.Drain}, []recipes.Strategy{recipes.Predecessor}
		e.Contenders, e.Transports, e.Count = []int{1}, []bench.Transport{{Name: "direct", Open: open}}, 9
		e.Session = recipes.SessionConfig{Servers: []string{server.Addr()}}
		var turns []time.Duration
		for _, trial := range e.Trials() {
			r, err := e.Run(t.Context(), trial)
			if err != nil {
				t.Fatal(err)
			}
			turns = append(turns, r.Elapsed/time.Duration(r.Operations))
		}
		return slices.Min(turns)
	}
	noop, real := fastest(new(fake.World).Open), fastest(zookeeper.Open)
	t.Logf("a turn takes %v of a lock that does nothing, %v of the fastest real one", noop, real)
	if noop > real/20 {
		// Under the race detector both are slow, the harness more so.
		if race.Enabled {
			t.Skip("the race detector slows the harness down")
		}
		t.Errorf("the harness takes %v a turn; want under 5 %% of %v", noop, real)
	}
}
