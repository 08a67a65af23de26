package plan_test

import (
	"math"
	"path/filepath"
	"slices"
	"testing"

	"github.com/zkrecipes/zkrecipes/bench/load"
	"github.com/zkrecipes/zkrecipes/bench/record"
	"github.com/zkrecipes/zkrecipes/internal/zkbench/plan"
	"github.com/zkrecipes/zkrecipes/internal/zkbench/unit"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// cells are predictions that were compared with what was measured.
type cells struct {
	number, missed int
	errs           []float64 // of times and throughput, as shares
}

// add compares an estimate with the median of what was measured.
func (c *cells) add(t *testing.T, what string, n int, e plan.Estimate, measured float64) {
	t.Helper()
	c.number++
	in := measured >= e.Lo*0.999 && measured <= e.Hi*1.001
	if !in {
		c.missed++
	}
	off := e.Value/measured - 1
	t.Logf("%s at %d: %s measured %.4g, predicted %.4g (%.4g to %.4g), off by %+.0f%%, in the interval: %v",
		what, n, e.Unit, measured, e.Value, e.Lo, e.Hi, 100*off, in)
	switch e.Unit {
	case unit.Events, unit.Bytes, unit.Reads:
		if math.Abs(off) > 0.05 {
			t.Errorf("%s at %d: %s is a count, and off by %.1f%%", what, n, e.Unit, 100*off)
		}
	default:
		c.errs = append(c.errs, math.Abs(off))
	}
}

// good checks what the plan promises of predictions far beyond the measured lines.
func (c cells) good(t *testing.T, least int) {
	t.Helper()
	if c.number < least {
		t.Fatalf("%d predictions; want %d or more", c.number, least)
	}
	slices.Sort(c.errs)
	typical := c.errs[len(c.errs)/2]
	t.Logf("%d of %d predictions lie in their intervals; the median error of times is %.1f%%", c.number-c.missed, c.number, 100*typical)
	if float64(c.missed) > 0.1*float64(c.number) {
		t.Errorf("%d of %d predictions missed; at most one in ten may", c.missed, c.number)
	}
	if typical > 0.15 {
		t.Errorf("the median error of times is %.1f%%; at most 15%% are promised", 100*typical)
	}
}

// drains are the drains of a strategy by contenders.
func drains(records []record.Record, s recipes.Strategy) map[int][]record.Record {
	levels := map[int][]record.Record{}
	for _, r := range records {
		if r.Strategy == s && r.Workload == load.Drain && r.Contenders > 1 && r.Delay == 0 {
			levels[r.Contenders] = append(levels[r.Contenders], r)
		}
	}
	return levels
}

// upTo fits a model to lines of at most so many contenders.
func upTo(t *testing.T, levels map[int][]record.Record, most int) *plan.Model {
	t.Helper()
	var records []record.Record
	for n, r := range levels {
		if n <= most {
			records = append(records, r...)
		}
	}
	m, err := plan.Fit(records, 1)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func figureOf(records []record.Record, figure string) (float64, bool) {
	var values []float64
	for _, r := range records {
		if v, ok := plan.Figure(r, figure); ok {
			values = append(values, v)
		}
	}
	if len(values) == 0 {
		return 0, false
	}
	slices.Sort(values)
	n := len(values)
	return (values[(n-1)/2] + values[n/2]) / 2, true
}

// TestLongRecordedLinesArePredictedFromShortOnes predicts 500 and 1000 contenders from up
// to 100, for each strategy that has such records and each number of servers. They were
// recorded on a quiet machine.
func TestLongRecordedLinesArePredictedFromShortOnes(t *testing.T) {
	var all cells
	for _, servers := range []string{"1", "3"} {
		records := recorded(t, filepath.Join("..", "..", "..", "testdata", "results", "zookeeper-"+servers+".jsonl"))
		for _, s := range []recipes.Strategy{recipes.Predecessor, recipes.Handoff} {
			levels := drains(records, s)
			m := upTo(t, levels, 100)
			for _, n := range []int{500, 1000} {
				for _, figure := range []string{unit.Handoffs, plan.Undisturbed, unit.HandoffP50, unit.HandoffP99, unit.Reads, unit.Events, unit.Bytes} {
					e, err := m.At(figure, n)
					if err != nil {
						continue // handoff reads nothing
					}
					measured, _ := figureOf(levels[n], figure)
					e.Unit = figure
					all.add(t, string(s)+", servers "+servers, n, e, measured)
				}
			}
		}
	}
	all.good(t, 50)
}
