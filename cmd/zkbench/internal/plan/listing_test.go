package plan_test

import (
	"math"
	"testing"

	"github.com/zkrecipes/zkrecipes/bench"
	"github.com/zkrecipes/zkrecipes/bench/load"
	"github.com/zkrecipes/zkrecipes/bench/record"
	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/plan"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

func measured(t *testing.T, n int) record.Record {
	t.Helper()
	e := bench.Experiment{
		Recipes: []load.Recipe{load.Lock}, Workloads: []load.Workload{load.Drain},
		Strategies: []recipes.Strategy{recipes.Predecessor}, Contenders: []int{n},
		Transports: []bench.Transport{{Name: "direct", Open: zookeeper.Open}},
		Count:      1, Root: "/zkbench/test",
		Session: recipes.SessionConfig{Servers: []string{zktest.Embedded(t).Addr()}},
	}
	r := must.Get(e.Run(t.Context(), e.Trials()[0]))(t)
	if r.Operations != int64(n-1) || r.Counters.Writes != int64(n-1) {
		t.Errorf("%d handoffs with %d writes; want %d of each", r.Operations, r.Counters.Writes, n-1)
	}
	return r
}

// A drain of N contenders lists lines of N-1, N-2, ... 1 names, N/2 on average. So twice the
// contenders cost N/2 more entries for each handoff.
func TestListingsGrowByAnEntryForEachContender(t *testing.T) {
	perHandoff := func(n int) float64 {
		r := measured(t, n)
		return float64(r.Counters.ResponseBytes) / float64(r.Operations)
	}
	const n = 40
	limits := plan.DefaultLimits(recipes.Predecessor)
	entry := float64(limits.Listing(2) - limits.Listing(1)) // what the plan assumes
	if got := (perHandoff(2*n) - perHandoff(n)) / (n / 2); math.Abs(got/entry-1) > 0.03 {
		t.Errorf("an entry of a listing costs %.1f bytes; the plan takes it for %.0f", got, entry)
	}
}
