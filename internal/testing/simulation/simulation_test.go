package simulation

import (
	"flag"
	"fmt"
	"maps"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"testing/cryptotest"
	"testing/synctest"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/testing/leaktest"
	"github.com/zkrecipes/zkrecipes/internal/testing/race"
)

var (
	seed  = flag.Uint64("seed", 0, "simulate only this seed, and log its trace")
	first = flag.Uint64("first", 1, "the first seed of several")
	seeds = flag.Int("seeds", 0, "number of seeds to simulate; 0 means a few")
	only  = flag.String("scenario", "", "simulate this scenario with every seed; empty: the seed chooses")
)

// simulate runs one seed. To repeat a trace, a run needs one processor, so that goroutines run one
// after the other, and no garbage collection, which would change their order.
func simulate(t *testing.T, seed uint64) Report {
	sc := scenarioOf(seed)
	if i := slices.IndexFunc(scenarios, func(sc scenario) bool { return sc.name == *only }); i >= 0 {
		sc = scenarios[i]
	} else if *only != "" {
		t.Fatalf("there is no scenario %q", *only)
	}
	return simulateScenario(t, sc, seed)
}

// simulateEach simulates n seeds of each scenario, and reports each violation. It is for scenarios that
// have seeds of their own: another entry in scenarios would change the scenario of every seed.
func simulateEach(t *testing.T, n int, all ...scenario) (reports []Report) {
	t.Helper()
	for _, sc := range all {
		for i := range max(1, n) {
			r := simulateScenario(t, sc, *first+uint64(i))
			for _, v := range r.Violations {
				t.Errorf("seed %d of %s: %v", r.Seed, sc.name, v)
			}
			if len(r.Violations) > 0 && testing.Verbose() {
				t.Logf("trace of seed %d of %s:\n%s", r.Seed, sc.name, r.Trace)
			}
			reports = append(reports, r)
		}
	}
	return reports
}

func simulateScenario(t *testing.T, sc scenario, seed uint64) (r Report) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	runtime.GC()
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(1 << 30))
	cryptotest.SetGlobalRandom(t, seed)
	synctest.Test(t, func(*testing.T) { r = sc.run(seed) })
	return r
}

// number returns the number of seeds of a test: that of the flag -seeds, or short with -short, or
// long.
func number(long, short int) int {
	switch {
	case *seeds > 0:
		return *seeds
	case testing.Short():
		return short
	}
	return long
}

// TestSimulation reports each violation with the command that runs its seed again.
func TestSimulation(t *testing.T) {
	if *seed != 0 {
		r := simulate(t, *seed)
		t.Logf("trace:\n%s", r.Trace)
		for _, v := range r.Violations {
			t.Error(v)
		}
		return
	}
	sum := &summary{turns: make(map[string]int), faults: make(map[string]int)}
	for i := range number(15, 15) { // few, because the race detector makes them eight times slower; .ci/simulate has many
		r := simulate(t, *first+uint64(i))
		sum.add(r)
		for _, v := range r.Violations {
			t.Errorf("seed %d (%s): %s\nreplay: go test ./internal/testing/simulation -run TestSimulation -seed %d -scenario %q -v",
				r.Seed, r.Scenario, v, r.Seed, r.Scenario)
		}
	}
	t.Log(sum)
}

// TestSeedsReplay: a seed decides the trace, in at least 17 of 20 seeds. The package comment says
// when it does not.
func TestSeedsReplay(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector makes the scheduler choose at random")
	}
	n := min(max(1, number(100, 50)/5), 40)
	same := 0
	for s := range n {
		seed := *first + uint64(s)
		if replays(t, seed) {
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

// replays reports whether one of four runs of a seed repeats another one. On a busy machine the
// scheduler interrupts more goroutines, and fewer runs are the same.
func replays(t *testing.T, seed uint64) bool {
	traces := make(map[string]bool)
	for range 4 {
		trace := simulate(t, seed).Trace
		if traces[trace] {
			return true
		}
		traces[trace] = true
	}
	return false
}

func TestMain(m *testing.M) { leaktest.Main(m) }

// summary adds up the results of several seeds.
type summary struct {
	seeds   int
	virtual time.Duration
	turns   map[string]int // by scenario
	faults  map[string]int // by kind
}

func (s *summary) add(r Report) {
	s.seeds++
	s.virtual += r.Virtual
	s.turns[r.Scenario] += r.Turns
	for k, n := range r.Faults {
		s.faults[k] += n
	}
}

func (s *summary) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d seeds, %.1f simulated hours\n", s.seeds, s.virtual.Hours())
	for _, list := range []struct {
		name string
		of   map[string]int
	}{{"turns", s.turns}, {"faults", s.faults}} {
		sum := 0
		for _, n := range list.of {
			sum += n
		}
		fmt.Fprintf(&b, "%d %s:", sum, list.name)
		for _, k := range slices.Sorted(maps.Keys(list.of)) {
			fmt.Fprintf(&b, " %s %d,", k, list.of[k])
		}
		b.WriteString("\n")
	}
	return b.String()
}
