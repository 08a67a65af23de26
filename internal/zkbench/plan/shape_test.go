package plan_test

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/bench/load"
	"github.com/zkrecipes/zkrecipes/bench/record"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/zkbench/plan"
	"github.com/zkrecipes/zkrecipes/recipes"
)

func drained(strategy recipes.Strategy, a, b float64) []record.Record {
	records := sweep(strategy, a, b, 0, 0, levels...)
	for i := range records {
		records[i].Workload = load.Drain
	}
	return records
}

func TestOnlyDrainsPredictOpenLoads(t *testing.T) {
	m := fit(t, sweep(recipes.Handoff, 1000, 0, 0, 0, levels...))
	if _, err := m.Open(1, 0, 1); !errors.Is(err, plan.ErrNotDrain) {
		t.Errorf("%v; want ErrNotDrain: the records are of cycles", err)
	}
}

// An idle machine widens the intervals and does not change the estimates.
func TestAMachineThatRestsMayTakeTwiceAsLong(t *testing.T) {
	m := fit(t, drained(recipes.Handoff, 100, 0))
	above := func(rate float64) float64 {
		b := must.Get(m.Open(rate, 0, 1))(t)
		return b.P50.Hi / b.P50.Value
	}
	if awake, rested := above(1100), above(900); math.Abs(rested/awake-2) > 0.1 {
		t.Errorf("an acquisition may wait %.2f times as long as estimated on an idle machine, and %.2f times on a busy one", rested, awake)
	}
}

// A lock that is acquired at random times and held for a fixed time is the queue M/D/1. If it is
// busy for half of the time, half of the acquisitions wait for others. Its distribution (Erlang,
// 1909) has P(wait <= D) = (1 - load) e^load.
func TestOpenLoadWaitsLikeAQueue(t *testing.T) {
	m := fit(t, drained(recipes.Handoff, 100, 0))
	const hold = 9900 * time.Microsecond // with a handoff 10 ms
	idle, err := m.Open(10, hold, 1)
	if err != nil || math.Abs(idle.Share-0.1) > 0.001 || math.Abs(idle.P50.Value/100e3-1) > 0.05 {
		t.Errorf("%+v, %v; want it busy 10%% of the time, and 100 µs alone", idle, err)
	}
	if most := idle.P99.Value; most < 5e6 || most > 15e6 {
		t.Errorf("p99 is %v; want most of a hold", time.Duration(most))
	}
	busy, err := m.Open(80, hold, 1)
	// (1 - 0.8) e^0.8 = 0.445: the median is somewhat over one turn of 10 ms.
	if err != nil || busy.P50.Value < 10e6 || busy.P50.Value > 20e6 || busy.P99.Value < 3*busy.P50.Value {
		t.Errorf("%+v, %v", busy, err)
	}
	if over, err := m.Open(100, hold, 1); err != nil || over.Share < 1 || over.P50.Value != 0 {
		t.Errorf("%+v, %v; want that it is too much", over, err)
	}
}
