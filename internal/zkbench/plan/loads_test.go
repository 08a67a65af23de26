package plan_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/zkrecipes/zkrecipes/bench/load"
	"github.com/zkrecipes/zkrecipes/bench/record"
	"github.com/zkrecipes/zkrecipes/internal/zkbench/plan"
	"github.com/zkrecipes/zkrecipes/internal/zkbench/unit"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// TestRecordedLoadsArePredictedFromDrains predicts cycles and open loads, with and without
// a hold, from drains on the same machine. Both are virtual machines: where there is a hold,
// or few acquisitions come, their processors sleep, and handoffs take up to twice as long
// (see asleep). So intervals are promised there, and the error is told.
// TestRecordedCyclesArePredictedFromDrains has the error on a quiet machine.
func TestRecordedLoadsArePredictedFromDrains(t *testing.T) {
	for name, files := range map[string][]string{
		"as they follow the sweep": {filepath.Join(results, "zookeeper-%s.jsonl"), filepath.Join(results, "loads", "zookeeper-%s.jsonl")},
		"on a shared machine":      {shared("%s"), shared("%s")},
	} {
		t.Run(name, func(t *testing.T) {
			var all cells
			for _, servers := range []string{"1", "3"} {
				records := recorded(t, fmt.Sprintf(files[0], servers))
				recordedLoads := recorded(t, fmt.Sprintf(files[1], servers))
				for _, s := range []recipes.Strategy{recipes.Predecessor, recipes.Handoff} {
					m := upTo(t, alone(records, s), 1000)
					for _, trials := range drains(records, s) {
						all.recorded(trials, timeOf)
					}
					for name, trials := range loads(recordedLoads, s) {
						all.recorded(trials, figureOfLoad)
						if e, ok := loadOf(t, m, trials[0]); ok {
							all.add(t, "servers "+servers+", "+name, trials[0].Contenders, e, figureOfLoad(trials))
						}
					}
				}
			}
			all.covered(t, 16)
			t.Logf("the median error is %.0f%%; two recordings of the same differ by %.0f%%", 100*middle(all.errs), 100*middle(all.spreads))
		})
	}
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

func timeOf(trials []record.Record) float64 {
	v, _ := figureOf(trials, unit.Time)
	return v
}

// figureOfLoad is what the plan predicts of a load. Waits count from when an acquisition
// should have started. The median by which the generator was late is its own, and not the
// lock's.
func figureOfLoad(trials []record.Record) float64 {
	if trials[0].Workload != load.Open {
		return timeOf(trials)
	}
	v, _ := figureOf(trials, unit.WaitP50)
	late := make([]float64, len(trials))
	for i, r := range trials {
		late[i] = float64(r.Late.ValueAtPercentile(50))
	}
	slices.Sort(late)
	return v - late[len(late)/2]
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
