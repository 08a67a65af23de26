package plan_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/bench/load"
	"github.com/zkrecipes/zkrecipes/bench/record"
	"github.com/zkrecipes/zkrecipes/internal/zkbench/histogram"
	"github.com/zkrecipes/zkrecipes/internal/zkbench/plan"
	"github.com/zkrecipes/zkrecipes/internal/zkbench/unit"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// sweep makes records whose handoffs take a + bN + cN² microseconds, each trial
// off by some per cent.
func sweep(strategy recipes.Strategy, a, b, c, noise float64, levels ...int) (records []record.Record) {
	random := rand.New(rand.NewPCG(1, 1))
	for _, n := range levels {
		for range 10 {
			us := (a + b*float64(n) + c*float64(n*n)) * math.Exp(noise*random.NormFloat64())
			handoff := time.Duration(us * float64(time.Microsecond))
			r := record.Record{
				Recipe: load.Lock, Workload: load.Cycle, Strategy: strategy, Contenders: n, Transport: "direct", Procs: 2,
				Measurement: load.Measurement{
					Operations: 100, Elapsed: 100 * handoff,
					Wait: histogram.New(), Handoff: histogram.New(), Service: histogram.New(),
					Counters: recipes.Stats{Reads: 200, WatchEvents: 100, ResponseBytes: int64(100 * (96 + 60*n))},
				},
			}
			_ = r.Handoff.RecordValues(int64(handoff), 100)
			records = append(records, r)
		}
	}
	return records
}

var levels = []int{2, 5, 10, 20, 50, 100, 200}

func TestModelFindsWhatItWasMadeOf(t *testing.T) {
	m, err := plan.Fit(sweep(recipes.Herd, 300, 20, 0.5, 0, levels...), 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{2, 30, 150, 400} {
		want := 1000 * (300 + 20*float64(n) + 0.5*float64(n*n))
		got, err := m.At(unit.HandoffP99, n)
		if err != nil || math.Abs(got.Value/want-1) > 0.01 || got.Lo > got.Value || got.Hi < got.Value {
			t.Errorf("%d contenders: %+v, %v; want %v", n, got, err, want)
		}
	}
	// 300 + 20N + N²/2 = 10 ms at N = 120.7.
	most, err := m.Most(unit.HandoffP99, 10e6)
	if err != nil || most.Likely < 119 || most.Likely > 121 || most.Safe > most.Likely || most.Capped {
		t.Errorf("%+v, %v; want 120", most, err)
	}
	if none, _ := m.Most(unit.HandoffP99, 1); none.Likely != 0 {
		t.Errorf("%+v; want none", none)
	}
	if all, _ := m.Most(unit.HandoffP99, 1e12); all.Likely != m.Reach() || !all.Capped {
		t.Errorf("%+v; want all, capped", all)
	}
}

func TestLevelLeftOutLiesInItsInterval(t *testing.T) {
	all := sweep(recipes.Predecessor, 500, 3, 0, 0.05, append(levels, 400)...)
	for _, left := range levels[1:] {
		var rest, out []record.Record
		for _, r := range all {
			if r.Contenders == left {
				out = append(out, r)
			} else {
				rest = append(rest, r)
			}
		}
		m, err := plan.Fit(rest, 1)
		if err != nil {
			t.Fatal(err)
		}
		for _, unit := range []string{unit.Handoffs, unit.HandoffP99, unit.Bytes} {
			estimate, err := m.At(unit, left)
			measured, _ := out[0].Metric(unit)
			// A single trial may lie outside; its noise is 5 %.
			if err != nil || measured < estimate.Lo*0.85 || measured > estimate.Hi*1.15 {
				t.Errorf("%s at %d: measured %v, predicted %+v, %v", unit, left, measured, estimate, err)
			}
		}
	}
}

func TestThroughputFollowsTheScalabilityLaw(t *testing.T) {
	var records []record.Record
	const lambda, sigma, kappa = 1000.0, 0.05, 0.001
	for _, n := range levels {
		x := lambda * float64(n) / (1 + sigma*float64(n-1) + kappa*float64(n*(n-1)))
		r := sweep(recipes.Herd, 100, 0, 0, 0, n)[0]
		r.Elapsed = time.Duration(100 / x * float64(time.Second))
		records = append(records, r)
	}
	m, err := plan.Fit(records, 1)
	if err != nil {
		t.Fatal(err)
	}
	s, ok := m.Scalability()
	if !ok || math.Abs(s.Lambda/lambda-1) > 0.01 || math.Abs(s.Sigma/sigma-1) > 0.02 || math.Abs(s.Kappa/kappa-1) > 0.02 {
		t.Errorf("%+v; want %v, %v, %v", s, lambda, sigma, kappa)
	}
	if peak := s.Peak(); math.Abs(peak-math.Sqrt((1-sigma)/kappa)) > 1 {
		t.Errorf("peak at %v", peak)
	}
}

func TestModelRefusesWhatItCannotKnow(t *testing.T) {
	m, err := plan.Fit(sweep(recipes.Predecessor, 500, 3, 0, 0.01, levels...), 1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.At(unit.HandoffP99, 401); !errors.Is(err, plan.ErrTooFar) {
		t.Errorf("%v; want ErrTooFar", err)
	}
	m.Factor = 3
	if _, err := m.At(unit.HandoffP99, 401); err != nil {
		t.Error(err)
	}
	if _, err := m.At(unit.ServerCPU, 10); !errors.Is(err, plan.ErrNoFigure) {
		t.Errorf("%v; want ErrNoFigure", err)
	}
	if _, err := plan.Fit(sweep(recipes.Predecessor, 500, 3, 0, 0.01, 1, 2, 5, 10, 20, 50), 1); err == nil || !strings.Contains(err.Error(), "a fit needs 6") {
		t.Errorf("%v; want that five levels of a line are too few", err)
	}
	mixed := append(sweep(recipes.Herd, 1, 1, 1, 0, levels...), sweep(recipes.Predecessor, 1, 1, 1, 0, levels...)...)
	if _, err := plan.Fit(mixed, 1); err == nil {
		t.Error("two strategies were fitted together")
	}
}

func TestLimitsAreComputed(t *testing.T) {
	l := plan.DefaultLimits(recipes.Predecessor)
	if w := l.Check(10); w != nil {
		t.Errorf("10 contenders: %q", w)
	}
	for n, want := range map[int]string{100: "maxClientCnxns", 10_000: "half of jute.maxbuffer", 20_000: "more than jute.maxbuffer", 1_000_000: "snapshot"} {
		if w := strings.Join(l.Check(n), "\n"); !strings.Contains(w, want) {
			t.Errorf("%d contenders: %q; want %q in it", n, w, want)
		}
	}
	if short, long := plan.DefaultLimits(recipes.Handoff).Listing(1), l.Listing(1); short >= long {
		t.Errorf("a name of handoff takes %d bytes, one of predecessor %d", short, long)
	}
}
