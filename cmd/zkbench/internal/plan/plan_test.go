package plan_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/bench/load"
	"github.com/zkrecipes/zkrecipes/bench/record"
	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/plan"
	"github.com/zkrecipes/zkrecipes/internal/histogram"
	"github.com/zkrecipes/zkrecipes/internal/testing/leaktest"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/unit"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// sweep makes records whose handoffs take a + bN + cN² microseconds, with some per cent of noise
// for each trial.
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

func fit(t *testing.T, records []record.Record) *plan.Model {
	t.Helper()
	m := must.Get(plan.Fit(records, 1))(t)
	return m
}

func TestModelFindsTheTermsOfItsRecords(t *testing.T) {
	m := fit(t, sweep(recipes.Herd, 300, 20, 0.5, 0, levels...))
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
	if all, _ := m.Most(unit.HandoffP99, 1e18); all.Likely != plan.Farthest || !all.Capped {
		t.Errorf("%+v; want all, capped", all)
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
	m := fit(t, records)
	s, ok := m.Scalability()
	if !ok || math.Abs(s.Lambda/lambda-1) > 0.01 || math.Abs(s.Sigma/sigma-1) > 0.02 || math.Abs(s.Kappa/kappa-1) > 0.02 {
		t.Errorf("%+v; want %v, %v, %v", s, lambda, sigma, kappa)
	}
	if peak := s.Peak(); math.Abs(peak-math.Sqrt((1-sigma)/kappa)) > 1 {
		t.Errorf("peak at %v", peak)
	}
}

func TestModelRefusesWhatItCannotKnow(t *testing.T) {
	m := fit(t, sweep(recipes.Predecessor, 500, 3, 0, 0.01, levels...))
	if _, err := m.At(unit.HandoffP99, plan.Farthest+1); !errors.Is(err, plan.ErrTooFar) {
		t.Errorf("%v; want ErrTooFar", err)
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
	for n, want := range map[int]string{100: "maxClientCnxns", 600_000: "half of max_listing", 1_200_000: "more than max_listing", 1_000_000: "snapshot"} {
		if w := strings.Join(l.Check(n), "\n"); !strings.Contains(w, want) {
			t.Errorf("%d contenders: %q; want %q in it", n, w, want)
		}
	}
	if short, long := plan.DefaultLimits(recipes.Handoff).Listing(1), l.Listing(1); short >= long {
		t.Errorf("a name of handoff takes %d bytes, one of predecessor %d", short, long)
	}
}

// A round-trip time is added once for each round trip of a handoff. Records at two delays show
// how many there are.
func TestDelayIsAddedForEachRoundTrip(t *testing.T) {
	const trips = 2.5
	near := sweep(recipes.Handoff, 500, 0, 0, 0.02, levels...)
	var both []record.Record
	for _, r := range near {
		far := r
		far.Delay = 4 * time.Millisecond
		far.Elapsed += time.Duration(float64(r.Operations) * trips * float64(far.Delay))
		far.Handoff = histogram.New()
		_ = far.Handoff.RecordValues(r.Handoff.Max()+int64(trips*float64(far.Delay)), 100)
		both = append(both, r, far)
	}
	for name, c := range map[string]struct {
		records  []record.Record
		trips    float64
		off      float64
		measured bool
	}{
		"records of two delays": {both, trips, 0.05, true},
		"records of one":        {near, 1, 0.05, false},
	} {
		m := fit(t, c.records)
		if strings.Contains(m.Trips(), "measured") != c.measured {
			t.Errorf("%s: %s", name, m.Trips())
		}
		for _, delay := range []time.Duration{0, time.Millisecond, 20 * time.Millisecond} {
			m.Delay = delay
			for _, n := range []int{50, 5000} {
				want := 500e3 + c.trips*float64(delay)
				got, err := m.At(unit.HandoffP50, n)
				if err != nil || math.Abs(got.Value/want-1) > c.off || got.Lo > want || got.Hi < want {
					t.Errorf("%s, %v, %d contenders: %+v, %v; want %v", name, delay, n, got, err, want)
				}
				if rate, err := m.At(unit.Handoffs, n); err != nil || math.Abs(rate.Value*want/1e9-1) > c.off {
					t.Errorf("%s, %v, %d contenders: %+v, %v; want %v", name, delay, n, rate, err, 1e9/want)
				}
			}
		}
	}
}

// The farther a prediction is from the measured levels, the wider its interval.
func TestIntervalsWidenWithTheDistance(t *testing.T) {
	m := fit(t, sweep(recipes.Predecessor, 500, 3, 0, 0.05, levels...))
	before := 0.0
	for _, n := range []int{500, 1000, 10_000, 100_000} {
		e, err := m.At(unit.HandoffP50, n)
		if width := e.Hi / e.Lo; err != nil || width <= before {
			t.Errorf("%d contenders: %+v, %v; want it wider than %v", n, e, err, before)
		} else {
			before = width
		}
	}
}

func TestEndsOfALineAreNamedInOrder(t *testing.T) {
	m := fit(t, sweep(recipes.Predecessor, 500, 3, 0, 0.05, levels...))
	l := plan.DefaultLimits(recipes.Predecessor)
	l.Descriptors, l.Heap = 5000, 100<<20
	ends := m.Ends(l)
	at := map[string]int{}
	for i, end := range ends {
		at[end.Resource] = end.At
		if i > 0 && end.At < ends[i-1].At {
			t.Errorf("%+v comes before %+v", ends[i-1], end)
		}
	}
	if at["generator's descriptors"] != 5001 || at["max_listing"] != 1137437 || at["server's heap"] == 0 {
		t.Errorf("%+v", ends)
	}
	// At 1 MB/s a listing of 96 + 60N bytes takes half of 500 + 3N microseconds from N = 3 on.
	l.Network = 1e6
	if end := m.Ends(l)[0]; end.Resource != "network" || end.At < 2 || end.At > 5 {
		t.Errorf("%+v; want the network at 3", end)
	}
	for i, end := range ends {
		if listing := l.Listing(end.At - 1); end.Resource == "max_listing" && (listing > l.MaxListing || l.Listing(end.At) <= l.MaxListing) {
			t.Errorf("%d: %+v, but the listing before it has %d bytes", i, end, listing)
		}
	}
}

func TestSharesAreOfAHandoffsTime(t *testing.T) {
	records := sweep(recipes.Predecessor, 500, 0, 0, 0, levels...)
	for i := range records {
		records[i].Client.CPU = 100 * 200 * time.Microsecond // 200 µs a handoff
		records[i].Server = map[string]float64{"process_cpu_seconds": 100 * 300e-6}
	}
	m := fit(t, records)
	l := plan.DefaultLimits(recipes.Predecessor)
	l.Processors, l.Fsync, l.Network = 2, 100*time.Microsecond, 1e9
	// A handoff takes 500 µs, and at 1000 contenders the answers have 60,096 bytes.
	want := []plan.Share{{Resource: "server's processor", Part: 0.3}, {Resource: "generator's processor", Part: 0.2}, {Resource: "fsync", Part: 0.2}, {Resource: "network", Part: 0.12}}
	got := m.Shares(1000, l)
	if len(got) != len(want) {
		t.Fatalf("%+v; want %+v", got, want)
	}
	for i := range got {
		if got[i].Resource != want[i].Resource || math.Abs(got[i].Part-want[i].Part) > 0.005 {
			t.Errorf("%+v; want %+v", got[i], want[i])
		}
	}
}

// The relay for delays is part of the generator's process, so records with a delay do not show
// what the generator takes.
func TestARelayDoesNotCountAsTheGenerator(t *testing.T) {
	fitted := func(delay time.Duration) *plan.Model {
		records := sweep(recipes.Handoff, 500, 0, 0, 0, levels...)
		for i := range records {
			records[i].Delay, records[i].Memory.RSS = delay, int64(records[i].Contenders)<<16
			records[i].Client.CPU = 100 * 200 * time.Microsecond
		}
		return fit(t, records)
	}
	l := plan.DefaultLimits(recipes.Handoff)
	l.Processors, l.Memory = 2, 1<<30
	for delay, want := range map[time.Duration]bool{0: true, time.Millisecond: false} {
		m := fitted(delay)
		processor := slices.ContainsFunc(m.Shares(100, l), func(s plan.Share) bool { return s.Resource == "generator's processor" })
		memory := slices.ContainsFunc(m.Ends(l), func(e plan.End) bool { return e.Resource == "generator's memory" })
		if processor != want || memory != want {
			t.Errorf("with a delay of %v: processor time known: %v, memory: %v; want %v", delay, processor, memory, want)
		}
	}
}

func TestMain(m *testing.M) { leaktest.Main(m) }

func TestServersAreEstimatedFromOthers(t *testing.T) {
	at := func(servers int, v float64) plan.Measured {
		return plan.Measured{Servers: servers, Time: plan.Estimate{Value: v, Lo: v * 0.9, Hi: v * 1.1}}
	}
	measured := []plan.Measured{at(3, 1000), at(1, 500)}
	for n, want := range map[int]float64{1: 500, 2: 750, 3: 1000, 5: 1250, 7: 1500} {
		e, err := plan.OnServers(measured, n)
		if err != nil || e.Value != want || e.Lo > want || e.Hi < want {
			t.Errorf("%d servers: %+v, %v; want %v", n, e, err, want)
		}
	}
	if e, _ := plan.OnServers(measured, 5); e.Lo > 1000 || e.Hi < 1500 {
		t.Errorf("5 servers: %+v; want no growth and twice the growth in the interval", e)
	}
	if _, err := plan.OnServers([]plan.Measured{at(3, 1), at(3, 2)}, 5); !errors.Is(err, plan.ErrOneNumber) {
		t.Errorf("%v; want ErrOneNumber", err)
	}
	for n, want := range map[int]int{1: 0, 2: 0, 3: 1, 4: 1, 5: 2} {
		if got := plan.Tolerated(n); got != want {
			t.Errorf("%d servers tolerate %d failures; want %d", n, got, want)
		}
	}
}

// By hand, for 3 servers with 100 sessions each: 100 move to the others (150 each), then 150 move
// (75 and 225), and then 225.
func TestRestartsMoveSessions(t *testing.T) {
	for _, c := range []struct{ sessions, servers, want int }{{300, 3, 475}, {300, 1, 300}, {0, 3, 0}, {200, 2, 300}} {
		if got := plan.Moved(c.sessions, c.servers); got != c.want {
			t.Errorf("%d sessions on %d servers: %d reconnect; want %d", c.sessions, c.servers, got, c.want)
		}
	}
}

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
func TestAMachineThatRestsMayTakeFourTimesAsLong(t *testing.T) {
	m := fit(t, drained(recipes.Handoff, 100, 0))
	above := func(rate float64) float64 {
		b := must.Get(m.Open(rate, 0, 1))(t)
		return b.P50.Hi / b.P50.Value
	}
	if awake, rested := above(1100), above(900); math.Abs(rested/awake-4) > 0.2 {
		t.Errorf("an acquisition may wait %.2f times as long as estimated on an idle machine, and %.2f times on a busy one", rested, awake)
	}
}

// A lock that is acquired at random times and held for a fixed time is the queue M/D/1. If it is
// busy for half of the time, half of the acquisitions wait for others. Its distribution (Erlang,
// 1909) has P(wait <= D) = (1 - load) e^load.
func TestOpenLoadWaitsLikeAQueue(t *testing.T) {
	m := fit(t, drained(recipes.Handoff, 100, 0))
	const hold = 9900 * time.Microsecond // hold and handoff together take 10 ms
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
