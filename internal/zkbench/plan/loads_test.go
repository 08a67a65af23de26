package plan_test

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/zkrecipes/zkrecipes/bench/load"
	"github.com/zkrecipes/zkrecipes/bench/record"
	"github.com/zkrecipes/zkrecipes/internal/zkbench/plan"
	"github.com/zkrecipes/zkrecipes/internal/zkbench/unit"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// TestRecordedLoadsWithAHoldArePredictedFromDrains predicts cycles and open loads with and
// without a hold from drains on the same shared machine. Times lie in their intervals. The
// median error is that of the records: two recordings of one load differ by more.
// TestRecordedCyclesArePredictedFromDrains has the error on a quiet machine.
func TestRecordedLoadsWithAHoldArePredictedFromDrains(t *testing.T) {
	var all cells
	var spreads []float64
	for _, servers := range []string{"1", "3"} {
		records := recorded(t, shared(servers))
		for _, s := range []recipes.Strategy{recipes.Predecessor, recipes.Handoff} {
			m := upTo(t, alone(records, s), 1000)
			for _, trials := range drains(records, s) {
				spreads = append(spreads, spread(trials, unit.Time))
			}
			for name, trials := range loads(records, s) {
				if len(trials) > 1 {
					spreads = append(spreads, spread(trials, figureOfLoad(trials[0])))
				}
				if e, ok := loadOf(t, m, trials[0]); ok {
					measured, _ := figureOf(trials, e.Unit)
					all.add(t, "servers "+servers+", "+name, trials[0].Contenders, e, measured)
				}
			}
		}
	}
	all.covered(t, 16)
	slices.Sort(spreads)
	slices.Sort(all.errs)
	off, noise := all.errs[len(all.errs)/2], spreads[len(spreads)/2]
	t.Logf("the median error is %.0f%%; two recordings of one load differ by %.0f%% in the median, of %d", 100*off, 100*noise, len(spreads))
	if off > max(0.15, noise) {
		t.Errorf("the median error is %.0f%%, and two recordings of one load differ by %.0f%% only", 100*off, 100*noise)
	}
}

// TestQuietLoadsArePredictedFromDrains does the same with loads that make results has
// recorded on a quiet machine, where there are any: there the error is promised.
func TestQuietLoadsArePredictedFromDrains(t *testing.T) {
	var all cells
	for _, servers := range []string{"1", "3"} {
		file := filepath.Join(filepath.Dir(quiet(servers)), "loads", filepath.Base(quiet(servers)))
		if _, err := os.Stat(file); err != nil {
			continue
		}
		records, recordedLoads := recorded(t, quiet(servers)), recorded(t, file)
		for _, s := range []recipes.Strategy{recipes.Predecessor, recipes.Handoff} {
			m := upTo(t, alone(records, s), 1000)
			for name, trials := range loads(recordedLoads, s) {
				if e, ok := loadOf(t, m, trials[0]); ok {
					measured, _ := figureOf(trials, e.Unit)
					all.add(t, "servers "+servers+", "+name, trials[0].Contenders, e, measured)
				}
			}
		}
	}
	if all.number == 0 {
		t.Skip("no loads were recorded on a quiet machine: make results")
	}
	all.good(t, 16)
}

// loads are the cycles and the open loads of a strategy, by name.
func loads(records []record.Record, s recipes.Strategy) map[string][]record.Record {
	groups := map[string][]record.Record{}
	for _, r := range records {
		if r.Strategy == s && (r.Workload == load.Cycle || r.Workload == load.Open) {
			groups[r.Name()] = append(groups[r.Name()], r)
		}
	}
	return groups
}

func figureOfLoad(r record.Record) string {
	if r.Workload == load.Open {
		return unit.WaitP50
	}
	return unit.Time
}

// loadOf predicts the figure of a load; nothing if the lock would be busy all the time.
func loadOf(t *testing.T, m *plan.Model, r record.Record) (plan.Estimate, bool) {
	t.Helper()
	if r.Workload == load.Cycle {
		e, err := m.Cycle(r.Contenders, r.Hold)
		if err != nil {
			t.Fatal(err)
		}
		e.Unit = unit.Time
		return e, true
	}
	b, err := m.Open(r.Rate, r.Hold, 1)
	if err != nil {
		t.Fatal(err)
	}
	b.P50.Unit = unit.WaitP50
	return b.P50, b.Share < 1
}

// spread is by which share two recordings of the same differ: the earlier and the later
// half of its trials.
func spread(trials []record.Record, figure string) float64 {
	half := len(trials) / 2
	before, _ := figureOf(trials[:half], figure)
	after, _ := figureOf(trials[half:], figure)
	return math.Expm1(math.Abs(math.Log(before / after)))
}
