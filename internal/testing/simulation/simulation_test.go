package simulation

import (
	"flag"
	"runtime"
	"runtime/debug"
	"testing"
	"testing/cryptotest"
	"testing/synctest"

	"github.com/zkrecipes/zkrecipes/internal/testing/race"
)

var (
	seed  = flag.Uint64("seed", 0, "simulate this seed alone, and log what happened")
	first = flag.Uint64("first", 1, "the first seed of several")
	seeds = flag.Int("seeds", 0, "how many seeds to simulate; 0 is a few")
)

// simulate runs one seed. A trace that can be repeated needs one processor, on which
// goroutines take turns, and no garbage collection, which would change whose turn it is.
func simulate(t *testing.T, seed uint64) Report { return simulateScenario(t, scenarioOf(seed), seed) }

func simulateScenario(t *testing.T, sc scenario, seed uint64) (r Report) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	runtime.GC()
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(1 << 30))
	cryptotest.SetGlobalRandom(t, seed)
	synctest.Test(t, func(*testing.T) { r = sc.run(seed) })
	return r
}

// number is how many seeds a test simulates where no flag says it.
func number(long, short int) int {
	switch {
	case *seeds > 0:
		return *seeds
	case testing.Short():
		return short
	}
	return long
}

func TestSimulation(t *testing.T) {
	if *seed != 0 {
		r := simulate(t, *seed)
		t.Logf("what happened:\n%s", r.Trace)
		for _, v := range r.Violations {
			t.Error(v)
		}
		return
	}
	sum := sweep(t, *first, number(60, 20))
	t.Logf("%s", sum)
	for _, f := range sum.Failed {
		t.Errorf("seed %d (%s): %s\nreplay: go test ./internal/testing/simulation -run TestSimulation -seed %d -v", f.Seed, f.Scenario, f.Violation, f.Seed)
	}
}

// A seed decides what happens. Where goroutines are woken by the same event, Go's
// scheduler decides too: see the package comment.
func TestSeedsReplay(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector has the scheduler choose at random")
	}
	n := min(number(40, 10), 100)
	same := 0
	for s := range n {
		seed := *first + uint64(s)
		once, again := simulate(t, seed), simulate(t, seed)
		if once.Trace == again.Trace {
			same++
		} else {
			t.Logf("seed %d differs", seed)
		}
	}
	t.Logf("%d of %d seeds gave the same trace twice", same, n)
	if same < n*17/20 {
		t.Errorf("only %d of %d seeds gave the same trace twice", same, n)
	}
}
