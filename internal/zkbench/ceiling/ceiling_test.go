package ceiling_test

import (
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/bench/load"
	"github.com/zkrecipes/zkrecipes/bench/record"
	"github.com/zkrecipes/zkrecipes/internal/zkbench/ceiling"
	"github.com/zkrecipes/zkrecipes/recipes"
)

func TestCeilingKnowsWhatALongLineWouldTake(t *testing.T) {
	trial := func(s recipes.Strategy, n int, took time.Duration) record.Record {
		r := record.Record{Recipe: load.Lock, Workload: load.Drain, Strategy: s, Contenders: n, Transport: "direct"}
		r.Elapsed = took
		return r
	}
	c := ceiling.Ceiling{Limit: 20 * time.Second}
	if _, yes := c.TooLong(trial(recipes.Herd, 1000, 0)); yes {
		t.Error("too long, and nothing is known")
	}
	for _, n := range []int{50, 100, 200} {
		c.Add(trial(recipes.Herd, n, time.Duration(n*n*n)*time.Microsecond))
		c.Add(trial(recipes.Predecessor, n, time.Duration(n)*time.Millisecond))
	}
	for _, tt := range []struct {
		strategy recipes.Strategy
		n        int
		want     time.Duration
		yes      bool
	}{
		{recipes.Herd, 200, 8 * time.Second, false},
		{recipes.Herd, 500, 125 * time.Second, true},
		{recipes.Predecessor, 1000, time.Second, false},
	} {
		got, yes := c.TooLong(trial(tt.strategy, tt.n, 0))
		if yes != tt.yes || got < tt.want*99/100 || got > tt.want*101/100 {
			t.Errorf("%s of %d: %v, too long: %v; want %v, %v", tt.strategy, tt.n, got, yes, tt.want, tt.yes)
		}
	}
	// A level that turned out to be too long is not made again.
	c.Add(trial(recipes.Predecessor, 1000, time.Minute))
	if _, yes := c.TooLong(trial(recipes.Predecessor, 1000, 0)); !yes {
		t.Error("what took a minute is not too long")
	}
	// Unless it was the machine.
	c.Add(trial(recipes.Predecessor, 1000, time.Second))
	if got, yes := c.TooLong(trial(recipes.Predecessor, 1000, 0)); yes {
		t.Errorf("what took %v is too long", got)
	}
}

// A closed loop is measured for as long with a thousand contenders as with two.
func TestCeilingLeavesOutNothingThatDoesNotGrow(t *testing.T) {
	trial := func(w load.Workload, n int) record.Record {
		r := record.Record{Recipe: load.Lock, Workload: w, Strategy: recipes.Herd, Contenders: n, Transport: "direct"}
		r.Elapsed = 2*time.Second + time.Duration(n)*time.Microsecond
		return r
	}
	for _, w := range []load.Workload{load.Cycle, load.Open, load.Many, load.Failover} {
		c := ceiling.Ceiling{Limit: 3 * time.Second}
		for _, n := range []int{2, 5, 10} {
			c.Add(trial(w, n))
			if expected, yes := c.TooLong(trial(w, 1000)); yes {
				t.Errorf("%s: after %d contenders a thousand are taken to need %v", w, n, expected)
			}
		}
	}
}
