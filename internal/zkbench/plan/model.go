package plan

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/zkrecipes/zkrecipes/bench/load"
	"github.com/zkrecipes/zkrecipes/bench/record"
	"github.com/zkrecipes/zkrecipes/internal/zkbench/unit"
	"github.com/zkrecipes/zkrecipes/recipes"
)

const (
	// MinLevels is how many numbers of contenders a fit needs.
	MinLevels = 6
	// DefaultFactor is how far beyond the largest measured level the fitted curves
	// answer, in multiples of it. Farther out the service model does.
	DefaultFactor = 2.0
	// Farthest is the largest number of contenders that anything is said about.
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

// Model is what was learned from a sweep of one strategy.
type Model struct {
	Name     string // of the combination, without the contenders and the delay
	Strategy recipes.Strategy
	Workload load.Workload
	Levels   []int // that it was fitted to, ascending
	Trials   int
	Factor   float64 // see DefaultFactor; may be changed
	// Delay is the round-trip time that the network adds in what is predicted. Fit
	// sets it to the least of the records.
	Delay time.Duration

	network  network
	curves   map[string]*curve
	services map[string]*service
	use      use
}

// curve is the model of one unit.
type curve struct {
	unit     string
	law      law
	fitted   []float64
	draws    [][]float64 // coefficients of bootstrap draws
	holdouts []float64   // measured over predicted, of each level when it is left out
	misses   []float64   // factors by which a prediction may be off, several a draw
}

// law is the shape of a curve. Of an inverted one the terms are of N over the
// value.
type law struct {
	terms    []term
	inverted bool
}

// usl is the Universal Scalability Law.
var usl = law{[]term{one, waits, pairs}, true}

// costOf is the law of what an operation costs under a strategy.
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

// Fit fits a model to the valid records with two or more contenders. They must be of one
// combination but for their contenders and delays. seed decides the draws of the
// bootstrap.
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
	for n := range byLevel {
		m.Levels = append(m.Levels, n)
	}
	slices.Sort(m.Levels)
	if len(m.Levels) < MinLevels {
		return nil, fmt.Errorf("plan: %d numbers of contenders from 2 up, %v; a fit needs %d: record a sweep with -contenders 2..100 or more", len(m.Levels), m.Levels, MinLevels)
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

// nameWithout is the name of a record without its contenders and its delay.
func nameWithout(r record.Record) string {
	r.Contenders, r.Procs, r.Delay = 0, 1, 0
	return r.Name()
}

// values are the positive values of a unit at each level, with the delay of the records
// taken out. It is nil if a level has none.
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

// newCurve fits a unit to its values at each level.
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

// misses draws factors by which a prediction may be off. The logarithms of the hold-out
// errors are taken for normal around zero. So few of them tell the deviation only
// roughly, which makes it Student's t.
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

// student draws from Student's t with that many degrees of freedom.
func student(random *rand.Rand, freedom int) float64 {
	var chi float64
	for range freedom {
		v := random.NormFloat64()
		chi += v * v
	}
	return random.NormFloat64() / math.Sqrt(chi/float64(freedom))
}

// resample draws as many trials as there are, with replacement.
func resample(random *rand.Rand, values []float64) []float64 {
	drawn := make([]float64, len(values))
	for i := range drawn {
		drawn[i] = values[random.IntN(len(values))]
	}
	return drawn
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}
