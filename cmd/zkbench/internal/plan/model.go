// Package plan answers questions of capacity from a recorded sweep: the cost of a line of N
// contenders, and how long a line can be.
//
//  1. [Fit] the records of one strategy. It needs at least [MinLevels] numbers of
//     contenders, because a curve through fewer fits anything.
//  2. Query the [Model]: [Model.At] for a number of contenders, [Model.Most] for a limit,
//     [Scalability.Peak] for the number of contenders with the highest throughput.
//  3. [Model.Ends] returns what limits the line, [Model.Shares] which resources a handoff
//     uses, and [Limits.Check] which ZooKeeper settings are too low.
//
// # The models
//
// Throughput follows the Universal Scalability Law (Gunther),
//
//	X(N) = λN / (1 + σ(N-1) + κN(N-1))
//
// with λ, σ and κ not negative. Its inverse N/X(N) is linear in 1, N-1 and N(N-1), so least
// squares of relative errors find the best non-negative coefficients exactly. A numerical
// search would only add starting points and tolerances.
//
// The costs of an operation follow from the strategy. By predecessor one contender lists N
// names for each handoff: a + bN. By herd up to N contenders list N names each: a + bN + cN².
// Handoff lists nothing. Of its N-1 handoffs all except the first are by a contender that
// has waited and watches its own place: a + b(N-2)/(N-1) + cN. Here, too, coefficients are
// not negative: no cost falls because more contenders wait.
//
// # Far from the measurements
//
// Beyond [Model.Factor] times the largest level the Universal Scalability Law does not hold:
// its terms have no meaning far outside the levels that they were fitted to. There the
// service model answers, with the time of a handoff by strategy. That is a constant, a part
// for the first handoff of a trial (which is slower), and for predecessor and herd a part for
// the listings. Levels with few handoffs count less. A herd's time grows faster than the length
// of the line, and more slowly than its square.
//
// A round-trip time between sessions and servers is added once for each round trip of a
// handoff: see [RoundTrips]. Records at several delays show how many there are.
//
// # Intervals
//
// Intervals come from a bootstrap. It draws whole trials, never single handoffs, because
// those depend on each other. Each draw is multiplied by one of the errors of the model on
// levels that were left out of its fit. So an interval is for a measurement at N, and not
// only for the curve.
//
// Intervals of the service model come from the scatter of trials and levels, and widen with
// the logarithm of the distance. The model learns how fast by predicting each level from the
// levels below it. The tests do the same with recorded sweeps.
package plan

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/zkrecipes/zkrecipes/bench/load"
	"github.com/zkrecipes/zkrecipes/bench/record"
	"github.com/zkrecipes/zkrecipes/internal/english"
	"github.com/zkrecipes/zkrecipes/internal/unit"
	"github.com/zkrecipes/zkrecipes/recipes"
)

const (
	// MinLevels is how many numbers of contenders a fit needs.
	MinLevels = 6
	// DefaultFactor is how far beyond the largest measured level the fitted curves answer,
	// in multiples of it. Beyond that the service model answers.
	DefaultFactor = 2.0
	// Farthest is the largest number of contenders that the model predicts.
	Farthest = 1_000_000

	draws         = 250
	missesPerDraw = 8
	confidence    = 0.95
)

// Units that a model knows, if the records have them, beside unit.Handoffs.
var costs = []string{
	unit.HandoffP50, unit.HandoffP99, unit.Reads, unit.Events,
	unit.Bytes, unit.Packets, unit.Fsyncs, unit.ServerCPU,
}

// Model is fitted to a sweep of one strategy.
type Model struct {
	Name     string // of the combination, without the contenders and the delay
	Strategy recipes.Strategy
	Workload load.Workload
	Levels   []int // the levels that it was fitted to, ascending
	Trials   int
	Factor   float64 // see DefaultFactor; the caller may change it
	// Delay is the round-trip time that predictions add for the network. Fit sets it to the
	// smallest of the records; the caller may change it.
	Delay time.Duration

	network  network
	curves   map[string]*curve
	services map[string]*service
	use      use
}

type curve struct {
	unit     string
	law      law
	fitted   []float64
	draws    [][]float64 // coefficients of bootstrap draws
	holdouts []float64   // measured over predicted, for each level when it is left out
	misses   []float64   // factors by which a prediction may be off; see missesPerDraw
}

// law is the shape of a curve. The terms of an inverted law give N over the value.
type law struct {
	terms    []term
	inverted bool
}

var usl = law{[]term{one, waits, pairs}, true}

func costOf(s recipes.Strategy) law {
	switch s {
	case recipes.Herd:
		return law{[]term{one, linear, quadratic}, false}
	case recipes.Handoff:
		return law{[]term{one, waited, linear}, false}
	}
	return law{[]term{one, linear}, false}
}

func (l law) fit(points []point) []float64 {
	if !l.inverted {
		return fit(l.terms, points)
	}
	turned := make([]point, len(points))
	for i, p := range points {
		turned[i] = point{p.n, p.n / p.y, p.w}
	}
	return fit(l.terms, turned)
}

func (l law) at(coefficients []float64, n float64) float64 {
	v := value(l.terms, coefficients, n)
	if l.inverted {
		return n / v
	}
	return v
}

// Fit fits a model to the valid records with two or more contenders. They may differ only in
// their contenders and delays. seed decides the draws of the bootstrap.
func Fit(records []record.Record, seed uint64) (*Model, error) {
	m := &Model{Factor: DefaultFactor, curves: map[string]*curve{}, services: map[string]*service{}}
	byLevel := map[int][]record.Record{}
	for _, r := range records {
		if !r.Valid() {
			continue
		}
		if name := nameWithout(r); m.Name == "" {
			m.Name, m.Strategy, m.Workload = name, r.Strategy, r.Workload
		} else if name != m.Name {
			return nil, fmt.Errorf("plan: records of %s and of %s cannot be fitted together", m.Name, name)
		}
		if r.Contenders < 2 {
			m.use.alone = append(m.use.alone, r)
			continue
		}
		byLevel[r.Contenders] = append(byLevel[r.Contenders], r)
		m.Trials++
	}
	m.Levels = slices.Sorted(maps.Keys(byLevel))
	if len(m.Levels) < MinLevels {
		return nil, fmt.Errorf("plan: %s of contenders from 2 up, %v; a fit needs %d: record a sweep with -contenders 2..100 or more", english.Count(len(m.Levels), "number"), m.Levels, MinLevels)
	}
	m.network = newNetwork(m.Strategy, byLevel)
	m.Delay = m.network.base
	for _, figure := range append([]string{unit.Handoffs}, costs...) {
		law := costOf(m.Strategy)
		if figure == unit.Handoffs {
			law = usl
		}
		if values := m.values(figure, byLevel); values != nil {
			m.curves[figure] = newCurve(figure, law, m.Levels, values, seed)
		}
	}
	for _, figure := range times {
		if values := m.values(figure, byLevel); values != nil {
			m.services[figure] = newServiceOf(m.Strategy, m.Levels, values)
		}
	}
	m.use.learn(m, byLevel)
	return m, nil
}

func nameWithout(r record.Record) string {
	r.Contenders, r.Procs, r.Delay = 0, 1, 0
	return r.Name()
}

// values returns the positive values of a unit at each level, less the delay of the records.
// It returns nil if a level has none.
func (m *Model) values(figure string, byLevel map[int][]record.Record) [][]float64 {
	values := make([][]float64, len(m.Levels))
	for i, n := range m.Levels {
		for _, r := range byLevel[n] {
			if v, ok := Figure(r, figure); ok && v > 0 {
				if v = m.network.without(figure, v, r.Delay); v > 0 {
					values[i] = append(values[i], v)
				}
			}
		}
		if len(values[i]) == 0 {
			return nil
		}
	}
	return values
}

func newCurve(unit string, law law, levels []int, values [][]float64, seed uint64) *curve {
	points := make([]point, len(levels))
	for i, n := range levels {
		points[i] = point{float64(n), median(values[i]), 1}
	}
	c := &curve{unit: unit, law: law, fitted: law.fit(points)}
	for i, p := range points {
		rest := slices.Delete(slices.Clone(points), i, i+1)
		c.holdouts = append(c.holdouts, p.y/law.at(law.fit(rest), p.n))
	}
	random := rand.New(rand.NewPCG(seed, 2))
	for range draws {
		drawn := slices.Clone(points)
		for i := range drawn {
			drawn[i].y = median(resample(random, values[i]))
		}
		c.draws = append(c.draws, law.fit(drawn))
	}
	c.misses = misses(random, c.holdouts, draws*missesPerDraw)
	return c
}

// misses draws n factors by which a prediction may be off. The logarithms of the hold-out
// errors are assumed to be normal around zero. There are few of them, so their deviation is
// uncertain. So the draws are from Student's t.
func misses(random *rand.Rand, holdouts []float64, n int) []float64 {
	var squares float64
	for _, miss := range holdouts {
		squares += math.Log(miss) * math.Log(miss)
	}
	deviation := math.Sqrt(squares / float64(len(holdouts)))
	all := make([]float64, n)
	for i := range all {
		all[i] = math.Exp(deviation * student(random, len(holdouts)))
	}
	return all
}

func student(random *rand.Rand, freedom int) float64 {
	var chi float64
	for range freedom {
		v := random.NormFloat64()
		chi += v * v
	}
	return random.NormFloat64() / math.Sqrt(chi/float64(freedom))
}

func resample(random *rand.Rand, values []float64) []float64 {
	drawn := make([]float64, len(values))
	for i := range drawn {
		drawn[i] = values[random.IntN(len(values))]
	}
	return drawn
}

func median(values []float64) float64 {
	sorted, n := slices.Sorted(slices.Values(values)), len(values)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// Undisturbed is the 10th percentile of the handoff. On a machine with other work most
// handoffs wait for a processor. The fastest tenth shows what a handoff takes by itself.
const Undisturbed = "p10-handoff-ns"

// times are the figures of the service model. Throughput is the inverse of the mean.
var times = []string{unit.Time, Undisturbed, unit.HandoffP50, unit.HandoffP99}

// pong is the size of the reply to a keep-alive, in bytes.
const pong = 20

// Figure returns a figure of a record as the plan uses it. Bytes are without keep-alives,
// whose number depends on time and not on handoffs.
func Figure(r record.Record, figure string) (float64, bool) {
	switch figure {
	case Undisturbed:
		if r.Handoff == nil || r.Handoff.TotalCount() == 0 {
			return 0, false
		}
		return float64(r.Handoff.ValueAtPercentile(10)), true
	case unit.Bytes:
		bytes := float64(r.Counters.ResponseBytes-pong*r.Counters.Pings) / float64(r.Operations)
		return bytes, bytes >= 0 && !math.IsInf(bytes, 0)
	}
	return r.Metric(figure)
}
