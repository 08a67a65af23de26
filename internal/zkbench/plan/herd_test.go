package plan_test

import (
	"testing"

	"github.com/zkrecipes/zkrecipes/bench/record"
	"github.com/zkrecipes/zkrecipes/internal/zkbench/plan"
	"github.com/zkrecipes/zkrecipes/internal/zkbench/unit"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// TestRecordedHerdsArePredictedFromSmallOnes asks with how many contenders a herd's handoff
// takes longer than it was measured to take with 200 and with 500. The records are of up
// to 100, on a quiet machine. The answer for the median is right within a quarter. For the
// 99th percentile it is at most twice as many, and the number that is surely kept is safe.
//
// Of longer herds so many contenders wake at a time that they wait for the generator's
// processors. So their trials are marked as invalid, and are compared all the same.
func TestRecordedHerdsArePredictedFromSmallOnes(t *testing.T) {
	var all cells
	for _, servers := range []string{"1", "3"} {
		m, levels := herds(t, quiet(servers))
		for _, n := range []int{200, 500} {
			all.predict(t, "herd, servers "+servers, m, n, levels[n],
				unit.HandoffP50, unit.HandoffP99, unit.Handoffs, unit.Reads, unit.Bytes)
			for figure, factor := range map[string]float64{unit.HandoffP50: 1.25, unit.HandoffP99: 2} {
				most := longest(t, m, figure, levels[n])
				t.Logf("servers %s: %s, measured with %d contenders, is predicted for %d; surely kept up to %d", servers, figure, n, most.Likely, most.Safe)
				if off := float64(most.Likely) / float64(n); off > factor || off < 1/factor || most.Safe > n {
					t.Errorf("servers %s: %s of %d contenders is predicted for %d, and surely kept up to %d", servers, figure, n, most.Likely, most.Safe)
				}
			}
		}
	}
	all.covered(t, 20)
}

// TestHerdsOfASharedMachineArePredictedFromSmallOnes does the same with records of a
// machine that did other things too: only intervals are promised.
func TestHerdsOfASharedMachineArePredictedFromSmallOnes(t *testing.T) {
	var all cells
	for _, servers := range []string{"1", "3"} {
		m, levels := herds(t, shared(servers))
		for _, n := range []int{200, 500} {
			all.predict(t, "herd, servers "+servers, m, n, levels[n], unit.HandoffP50, unit.HandoffP99, unit.Handoffs)
			if most := longest(t, m, unit.HandoffP50, levels[n]); most.Safe > n {
				t.Errorf("servers %s: what was reached with %d contenders is said to be surely kept with %d", servers, n, most.Safe)
			}
		}
	}
	all.covered(t, 8)
}

// herds fits a model to herds of up to 100 contenders, and returns all their records.
func herds(t *testing.T, file string) (*plan.Model, map[int][]record.Record) {
	t.Helper()
	return upTo(t, drains(recorded(t, file), recipes.Herd), 100), drains(everything(t, file), recipes.Herd)
}

// longest asks how many contenders keep what was measured.
func longest(t *testing.T, m *plan.Model, figure string, records []record.Record) plan.Most {
	t.Helper()
	limit, ok := figureOf(records, figure)
	if !ok {
		t.Fatalf("no %s", figure)
	}
	most, err := m.Most(figure, limit)
	if err != nil {
		t.Fatal(err)
	}
	return most
}
