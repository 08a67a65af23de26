package plan_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/zkrecipes/zkrecipes/bench/plan"
	"github.com/zkrecipes/zkrecipes/bench/record"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// TestRecordedLevelLeftOutLiesInItsInterval recomputes, from the recorded sweep,
// what the plan would have said about each inner level without having seen it. Of
// intervals of 95 % one in twenty may miss, and no more.
func TestRecordedLevelLeftOutLiesInItsInterval(t *testing.T) {
	f, err := os.Open(filepath.Join("..", "..", "testdata", "results", "small.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	runs, err := record.Read(f)
	if err != nil {
		t.Fatal(err)
	}
	predictions, missed := 0, 0
	for _, strategy := range recipes.Strategies() {
		for _, left := range []int{10, 20, 35, 50, 75} {
			var rest []record.Record
			values := map[string][]float64{}
			for _, r := range runs[0].Records {
				if r.Strategy != strategy {
					continue
				}
				if r.Contenders != left {
					rest = append(rest, r)
					continue
				}
				for _, m := range r.Metrics() {
					values[m.Unit] = append(values[m.Unit], m.Value)
				}
			}
			if len(rest) == 0 {
				continue // a strategy that was not recorded
			}
			m, err := plan.Fit(rest, 1)
			if err != nil {
				t.Fatal(err)
			}
			for _, unit := range []string{record.UnitHandoffs, record.UnitHandoffP99, record.UnitEvents, record.UnitBytes} {
				e, err := m.At(unit, left)
				if err != nil {
					t.Fatal(err)
				}
				measured := values[unit]
				slices.Sort(measured)
				predictions++
				if median := measured[len(measured)/2]; median < e.Lo*0.999 || median > e.Hi*1.001 {
					missed++
					t.Logf("%s, %d contenders: %s is %v; predicted %.4g to %.4g", strategy, left, unit, median, e.Lo, e.Hi)
				}
			}
		}
	}
	if predictions < 40 || missed > predictions/20 {
		t.Errorf("%d of %d predictions missed", missed, predictions)
	}
}
