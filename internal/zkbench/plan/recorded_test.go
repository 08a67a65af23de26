package plan_test

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/zkrecipes/zkrecipes/bench/record"
	"github.com/zkrecipes/zkrecipes/internal/zkbench/plan"
	"github.com/zkrecipes/zkrecipes/internal/zkbench/unit"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// predicted are the units that are compared with what was measured.
var predicted = []string{unit.Handoffs, unit.HandoffP99, unit.Events, unit.Bytes}

// TestRecordedLevelLeftOutLiesInItsInterval recomputes, from every recorded sweep,
// what the plan would have said about each inner level without having seen it. Of
// intervals of 95 % one in twenty may miss, and as many more as chance explains: two
// standard deviations of as many throws.
func TestRecordedLevelLeftOutLiesInItsInterval(t *testing.T) {
	latest, err := filepath.Glob(filepath.Join(results, "*.jsonl"))
	if err != nil || len(latest) == 0 {
		t.Fatalf("no recorded sweeps, %v", err)
	}
	for _, file := range append(latest, quiet("1"), quiet("3")) {
		t.Run(filepath.Base(filepath.Dir(file))+"/"+filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			predictions, missed := 0, 0
			for _, strategy := range recipes.Strategies() {
				p, m := leaveOut(t, strategy, recorded(t, file))
				predictions, missed = predictions+p, missed+m
			}
			n := float64(predictions)
			if most := n/20 + 2*math.Sqrt(n*0.05*0.95); predictions < 40 || float64(missed) > most {
				t.Errorf("%d of %d predictions missed; at most %.1f may", missed, predictions, most)
			}
		})
	}
}

// recorded returns the valid records of a file.
func recorded(t *testing.T, file string) []record.Record {
	t.Helper()
	return slices.DeleteFunc(everything(t, file), func(r record.Record) bool { return !r.Valid() })
}

// everything returns all records of a file.
func everything(t *testing.T, file string) (records []record.Record) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	runs, err := record.Read(f)
	if err != nil {
		t.Fatal(err)
	}
	for _, run := range runs {
		records = append(records, run.Records...)
	}
	return records
}

// leaveOut predicts each inner level of a strategy from the others. A strategy that
// has too few levels to leave one out has no predictions.
func leaveOut(t *testing.T, strategy recipes.Strategy, records []record.Record) (predictions, missed int) {
	t.Helper()
	byLevel := map[int][]record.Record{}
	for _, r := range records {
		if r.Strategy == strategy && r.Contenders > 1 {
			byLevel[r.Contenders] = append(byLevel[r.Contenders], r)
		}
	}
	var levels []int
	for n := range byLevel {
		levels = append(levels, n)
	}
	slices.Sort(levels)
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
		m, err := plan.Fit(rest, 1)
		if err != nil {
			t.Fatal(err)
		}
		for _, unit := range predicted {
			measured, ok := medianOf(byLevel[left], unit)
			if !ok {
				continue
			}
			e, err := m.At(unit, left)
			if err != nil {
				t.Fatal(err)
			}
			predictions++
			if measured < e.Lo*0.999 || measured > e.Hi*1.001 {
				missed++
				t.Logf("%s, %d contenders: %s is %.4g; predicted %.4g to %.4g", strategy, left, unit, measured, e.Lo, e.Hi)
			}
		}
	}
	return predictions, missed
}

func medianOf(records []record.Record, unit string) (float64, bool) {
	var values []float64
	for _, r := range records {
		if v, ok := r.Metric(unit); ok {
			values = append(values, v)
		}
	}
	if len(values) == 0 {
		return 0, false
	}
	slices.Sort(values)
	return values[len(values)/2], true
}
