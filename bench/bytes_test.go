package bench_test

import (
	"math"
	"testing"

	"github.com/zkrecipes/zkrecipes/bench/load"
	"github.com/zkrecipes/zkrecipes/internal/zkbench/plan"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// A drain of N contenders lists lines of N-1, N-2, ... 1 names, N/2 on average, so
// that twice the contenders cost N/2 entries more a handoff.
func TestListingsGrowByAnEntryForEachContender(t *testing.T) {
	perHandoff := func(n int) float64 {
		r := drained(t, embedded(t), zookeeper.Open, load.Lock, recipes.Predecessor, n)
		return float64(r.Counters.ResponseBytes) / float64(r.Operations)
	}
	const n = 40
	limits := plan.DefaultLimits(recipes.Predecessor)
	entry := float64(limits.Listing(2) - limits.Listing(1)) // what the plan takes it for
	if got := (perHandoff(2*n) - perHandoff(n)) / (n / 2); math.Abs(got/entry-1) > 0.03 {
		t.Errorf("an entry of a listing costs %.1f bytes; the plan takes it for %.0f", got, entry)
	}
}
