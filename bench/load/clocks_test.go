package load_test

import (
	"slices"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/zkrecipes/zkrecipes/bench/load"
	"github.com/zkrecipes/zkrecipes/internal/zkbench/histogram"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// Two machines whose clocks are five minutes apart measure what two with the same clock
// do: of each grant only differences within its own process count.
func TestClocksThatDoNotAgreeChangeNothing(t *testing.T) {
	part := func(apart time.Duration, tokens ...int64) load.Measurement {
		m := load.Measurement{
			Operations: int64(len(tokens)), Elapsed: time.Second,
			Wait: histogram.New(), Handoff: histogram.New(), Service: histogram.New(), Late: histogram.New(),
		}
		for _, token := range tokens {
			at := apart + time.Duration(token)*time.Millisecond
			m.Grants = append(m.Grants, load.Grant{Token: recipes.Token(token), Joined: apart, Granted: at, Left: at + 100*time.Microsecond})
		}
		return m
	}
	merged := func(apart time.Duration) load.Measurement {
		m, err := load.Merge(load.Drain, []load.Measurement{part(0, 1, 2, 5, 6), part(apart, 3, 4, 7, 8)})
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	same := merged(0)
	for _, apart := range []time.Duration{5 * time.Minute, -5 * time.Minute} {
		m := merged(apart)
		if m.Operations != same.Operations || m.Elapsed != same.Elapsed || !slices.Equal(values(m.Handoff), values(same.Handoff)) {
			t.Errorf("clocks %v apart: %d operations in %v, handoffs %v; want %d in %v, %v", apart,
				m.Operations, m.Elapsed, values(m.Handoff), same.Operations, same.Elapsed, values(same.Handoff))
		}
	}
	if n := same.Handoff.TotalCount(); n != 4 {
		t.Errorf("%d handoffs within one process; want 4", n)
	}
}

// values are the counts of a histogram's values.
func values(h *hdrhistogram.Histogram) (all []int64) {
	for _, bar := range h.Distribution() {
		if bar.Count > 0 {
			all = append(all, bar.From, bar.Count)
		}
	}
	return all
}
