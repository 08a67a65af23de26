package plan_test

import (
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/zkrecipes/zkrecipes/bench/load"
	"github.com/zkrecipes/zkrecipes/bench/record"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/zkbench/plan"
	"github.com/zkrecipes/zkrecipes/internal/zkbench/unit"
	"github.com/zkrecipes/zkrecipes/recipes"
)

var predicted = []string{unit.Handoffs, unit.HandoffP99, unit.Events, unit.Bytes}

// TestRecordedLevelLeftOutLiesInItsInterval predicts, for each recorded sweep, each inner level
// from the others. One in twenty of the 95 % intervals may miss its measurement, plus two standard
// deviations for chance.
func TestRecordedLevelLeftOutLiesInItsInterval(t *testing.T) {
	latest, err := filepath.Glob(filepath.Join(results, "*.jsonl"))
	if err != nil || len(latest) == 0 {
		t.Fatalf("no recorded sweeps, %v", err)
	}
	for _, file := range append(latest, quiet("1"), quiet("3")) {
		t.Run(filepath.Base(filepath.Dir(file))+"/"+filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			predictions, missed := 0, 0
			records := recorded(t, file)
			for _, strategy := range recipes.Strategies() {
				p, m := leaveOut(t, strategy, records)
				predictions, missed = predictions+p, missed+m
			}
			n := float64(predictions)
			if most := n/20 + 2*math.Sqrt(n*0.05*0.95); predictions < 40 || float64(missed) > most {
				t.Errorf("%d of %d predictions missed; at most %.1f may", missed, predictions, most)
			}
		})
	}
}

func recorded(t *testing.T, file string) []record.Record {
	t.Helper()
	return slices.DeleteFunc(everything(t, file), invalid)
}

func invalid(r record.Record) bool { return !r.Valid() }

func everything(t *testing.T, file string) (records []record.Record) {
	t.Helper()
	f := must.Get(os.Open(file))(t)
	defer f.Close()
	runs := must.Get(record.Read(f))(t)
	for _, run := range runs {
		records = append(records, run.Records...)
	}
	return records
}

// leaveOut predicts each inner level of a strategy from the others. A strategy with too few levels
// to leave one out has no predictions.
func leaveOut(t *testing.T, strategy recipes.Strategy, records []record.Record) (predictions, missed int) {
	t.Helper()
	byLevel := map[int][]record.Record{}
	for _, r := range records {
		if r.Strategy == strategy && r.Contenders > 1 {
			byLevel[r.Contenders] = append(byLevel[r.Contenders], r)
		}
	}
	levels := slices.Sorted(maps.Keys(byLevel))
	if len(levels) <= plan.MinLevels {
		return 0, 0
	}
	// The smallest and the largest would be extrapolated.
	for _, left := range levels[1 : len(levels)-1] {
		var rest []record.Record
		for _, n := range levels {
			if n != left {
				rest = append(rest, byLevel[n]...)
			}
		}
		m := fit(t, rest)
		for _, unit := range predicted {
			measured, ok := figureOf(byLevel[left], unit)
			if !ok {
				continue
			}
			e := must.Get(m.At(unit, left))(t)
			predictions++
			if measured < e.Lo*0.999 || measured > e.Hi*1.001 {
				missed++
				t.Logf("%s, %d contenders: %s is %.4g; predicted %.4g to %.4g", strategy, left, unit, measured, e.Lo, e.Hi)
			}
		}
	}
	return predictions, missed
}

// TestRecordedOpenLoadsArePredictedFromDrains predicts open loads, with and without a hold, from
// drains on the same machine. Both are virtual machines. With a hold, or with few acquisitions,
// their processors sleep, and a handoff can be twice as slow (see asleep). So the test checks the
// intervals and logs the error.
func TestRecordedOpenLoadsArePredictedFromDrains(t *testing.T) {
	for name, files := range map[string][]string{
		"as they follow the sweep": {filepath.Join(results, "zookeeper-%s.jsonl"), filepath.Join(results, "loads", "zookeeper-%s.jsonl")},
		"on a shared machine":      {shared("%s"), shared("%s")},
	} {
		t.Run(name, func(t *testing.T) {
			var all cells
			for _, servers := range []string{"1", "3"} {
				drained, loads := recorded(t, fmt.Sprintf(files[0], servers)), recorded(t, fmt.Sprintf(files[1], servers))
				for _, s := range []recipes.Strategy{recipes.Predecessor, recipes.Handoff} {
					m := upTo(t, alone(drained, s), 1000)
					for name, trials := range openLoads(loads, s) {
						b := must.Get(m.Open(trials[0].Rate, trials[0].Hold, 1))(t)
						if b.Share < 1 {
							b.P50.Unit = unit.WaitP50
							all.add(t, "servers "+servers+", "+name, trials[0].Contenders, b.P50, waitOf(trials))
						}
					}
				}
			}
			all.covered(t, 4)
			t.Logf("the median error is %.0f%%", 100*middle(all.errs))
		})
	}
}

func openLoads(records []record.Record, s recipes.Strategy) map[string][]record.Record {
	groups := map[string][]record.Record{}
	for _, r := range records {
		if r.Strategy == s && r.Workload == load.Open {
			groups[r.Name()] = append(groups[r.Name()], r)
		}
	}
	return groups
}

// waitOf returns the median wait of an open load. Waits count from the scheduled start of an
// acquisition. The median lateness of the generator is subtracted, because it is not the lock's.
func waitOf(trials []record.Record) float64 {
	v, _ := figureOf(trials, unit.WaitP50)
	late := make([]float64, len(trials))
	for i, r := range trials {
		late[i] = float64(r.Late.ValueAtPercentile(50))
	}
	return v - middle(late)
}
