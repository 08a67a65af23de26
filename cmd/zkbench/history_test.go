package main

import (
	"strings"
	"testing"

	"github.com/zkrecipes/zkrecipes/bench/record"
)

// A run that goes on makes trials again that were invalid, unless none was ever valid.
func TestWhatIsNeverValidIsNotTriedForEver(t *testing.T) {
	trial := func(contenders int, invalid ...string) record.Record {
		return record.Record{Recipe: "lock", Workload: "drain", Contenders: contenders, Transport: direct, Invalid: invalid}
	}
	const busy = "the generator was busy"
	runs := []record.Run{{Records: []record.Record{
		trial(2), trial(2, busy), trial(2, busy), trial(2, busy),
		trial(5, busy), trial(5, busy),
		trial(10, busy), trial(10, busy), trial(10, busy),
	}}}
	p, err := newHistory(runs, record.Server{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	if yes, why := p.skip(trial(2)); !yes || why != "" {
		t.Errorf("a valid one is made again: %q", why)
	}
	for _, n := range []int{2, 5} {
		if yes, why := p.skip(trial(n)); yes {
			t.Errorf("with %d contenders: %q", n, why)
		}
	}
	if yes, why := p.skip(trial(10)); !yes || !strings.Contains(why, "none of 3 trials in the file is valid") {
		t.Errorf("%v, %q", yes, why)
	}
	if yes, why := p.skip(trial(10)); !yes || why != "" {
		t.Errorf("it is told again: %q", why)
	}
}
