package plan

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"time"

	"github.com/zkrecipes/zkrecipes/bench/load"
	"github.com/zkrecipes/zkrecipes/internal/english"
	"github.com/zkrecipes/zkrecipes/internal/unit"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// ErrTooFar is returned for more than Farthest contenders.
var ErrTooFar = errors.New("too far")

// ErrNoFigure is returned for a unit that the records do not have.
var ErrNoFigure = errors.New("the records do not have this figure")

// Estimate is a predicted value with the 95 % interval in which a measurement is expected.
type Estimate struct {
	Unit          string
	Value, Lo, Hi float64
	// Typical and Worst are the hold-out errors, as shares: the median and the largest
	// error of the model on levels that were left out of its fit.
	Typical, Worst float64
}

// Units are the units that the model can predict, in the order of the records.
func (m *Model) Units() (units []string) {
	for _, figure := range slices.Concat([]string{unit.Handoffs, Undisturbed}, costs) {
		if m.curves[figure] != nil || m.services[figure] != nil {
			units = append(units, figure)
		}
	}
	return units
}

// Reach is the largest number of contenders that the fitted curves predict.
func (m *Model) Reach() int { return int(m.Factor * float64(m.Levels[len(m.Levels)-1])) }

// Far reports whether n is beyond Reach. The service model then predicts, and not the curves.
func (m *Model) Far(n int) bool { return n > m.Reach() }

// At estimates a unit for n contenders, from 2 to Farthest.
func (m *Model) At(figure string, n int) (Estimate, error) {
	switch {
	case n < 2:
		return Estimate{}, fmt.Errorf("plan: %s; a line has 2 or more", english.Count(n, "contender"))
	case n > Farthest:
		return Estimate{}, fmt.Errorf("plan: %s: %w: predictions end at %d", english.Count(n, "contender"), ErrTooFar, Farthest)
	}
	c := m.curves[figure]
	if c != nil && (!m.Far(n) && m.Delay == m.network.base || !isTime(figure)) {
		return c.at(float64(n)), nil
	}
	if figure == unit.Handoffs && m.services[unit.Time] != nil {
		return m.served(unit.Time, n).inverted(), nil
	}
	if m.services[figure] == nil {
		return Estimate{}, fmt.Errorf("plan: %s: %w", figure, ErrNoFigure)
	}
	return m.served(figure, n), nil
}

func (m *Model) served(figure string, n int) Estimate {
	return m.network.with(m.services[figure].at(figure, float64(n)), m.Delay)
}

func isTime(figure string) bool { return figure == unit.Handoffs || slices.Contains(times, figure) }

func (e Estimate) inverted() Estimate {
	e.Unit, e.Value, e.Lo, e.Hi = unit.Handoffs, 1e9/e.Value, 1e9/e.Hi, 1e9/e.Lo
	return e
}

func (c *curve) at(n float64) Estimate {
	e := Estimate{Unit: c.unit, Value: c.law.at(c.fitted, n)}
	var all []float64
	for i, miss := range c.misses {
		all = append(all, c.law.at(c.draws[i/missesPerDraw], n)*miss)
	}
	slices.Sort(all)
	e.Lo, e.Hi = quantile(all, (1-confidence)/2), quantile(all, (1+confidence)/2)
	// The draws may all lie on one side of the fit. The interval contains it in any case.
	e.Lo, e.Hi = min(e.Lo, e.Value), max(e.Hi, e.Value)
	errs := make([]float64, len(c.holdouts))
	for i, miss := range c.holdouts {
		errs[i] = math.Abs(miss - 1)
	}
	e.Typical, e.Worst = median(errs), slices.Max(errs)
	return e
}

func quantile(sorted []float64, q float64) float64 {
	return sorted[int(math.Round(q*float64(len(sorted)-1)))]
}

// Most is the number of contenders that keep a cost under a limit.
type Most struct {
	// Likely is the largest number whose estimate is under the limit. Safe is the largest
	// number whose whole interval is under it. 0 means that even 2 contenders exceed the
	// limit.
	Likely, Safe int
	// Capped is set if the search ended at Farthest, before it reached the limit.
	Capped bool
}

// Most returns how many contenders keep a unit at or under a limit. Lower values of the unit
// must be better.
func (m *Model) Most(figure string, limit float64) (Most, error) {
	if _, err := m.At(figure, 2); err != nil {
		return Most{}, err
	}
	at := func(n int) Estimate {
		e, _ := m.At(figure, n) // the unit is known, and n is in range
		return e
	}
	likely := largest(Farthest, func(n int) bool { return at(n).Value <= limit })
	safe := largest(Farthest, func(n int) bool { return at(n).Hi <= limit })
	return Most{likely, min(safe, likely), likely == Farthest}, nil
}

// largest is the largest n from 2 to reach for which holds returns true, or 0. Costs never
// fall with n, so bisection finds it.
func largest(reach int, holds func(int) bool) int {
	if !holds(2) {
		return 0
	}
	return 2 + sort.Search(reach-2, func(i int) bool { return !holds(3 + i) })
}

// Scalability has the coefficients of the Universal Scalability Law.
type Scalability struct {
	Lambda float64 // throughput of one contender, a second
	Sigma  float64 // contention
	Kappa  float64 // crosstalk between contenders
}

// Scalability returns the fitted law, or false if the records have no throughput to
// fit.
func (m *Model) Scalability() (Scalability, bool) {
	c := m.curves[unit.Handoffs]
	if c == nil || c.fitted[0] == 0 {
		return Scalability{}, false
	}
	a := c.fitted[0]
	return Scalability{1 / a, c.fitted[1] / a, c.fitted[2] / a}, true
}

// Peak is the number of contenders with the highest throughput, or +Inf if throughput never
// falls.
func (s Scalability) Peak() float64 {
	if s.Kappa == 0 {
		return math.Inf(1)
	}
	return math.Sqrt(max(0, 1-s.Sigma) / s.Kappa)
}

const (
	// offShape is the additional error of predicting an open load from drains, as a
	// logarithm.
	offShape = 0.15

	// asleep is the factor by which a handoff may be slower after the machines were idle for
	// resting or longer. In a drain no processor has time to sleep. On the virtual machine of
	// testdata/results median waits are 3 to 7 times as long as expected, of which the interval
	// for a machine that does not rest explains 1.9. It is assumed to be smaller on hardware.
	asleep  = 4
	resting = time.Millisecond
)

// ErrNotDrain is returned where records of drains are needed.
var ErrNotDrain = errors.New("it needs records of -workload drain")

// rested is the factor by which a handoff may be slower after the machines were idle for d.
func rested(d time.Duration) float64 {
	if d < resting {
		return 1
	}
	return asleep
}

// Busy is the prediction for acquisitions that arrive independently of each other.
type Busy struct {
	Share    float64  // of the time that holds and handoffs take; at 1 or more the lock cannot keep up
	P50, P99 Estimate // of the wait, in ns; zero if Share is 1 or more
}

// arrivals is how many acquisitions are simulated for [Model.Open].
const arrivals = 20_000

// Open estimates the waits of acquisitions that arrive at random, rate a second, and hold for
// hold. A free lock is granted after the wait of a single contender, and a held lock one
// handoff after its release. seed decides the draws.
func (m *Model) Open(rate float64, hold time.Duration, seed uint64) (Busy, error) {
	if m.Workload != load.Drain || m.services[unit.HandoffP50] == nil || m.services[unit.HandoffP99] == nil {
		return Busy{}, ErrNotDrain
	}
	// The line of an open load is short. Only the handoff of a herd depends on the length.
	// The other strategies use the time of a longer line, in which the server is warm.
	line := 100
	if m.Strategy == recipes.Herd {
		line = 10
	}
	p50, p99 := m.served(unit.HandoffP50, line), m.served(unit.HandoffP99, line)
	spread := max(0, math.Log(p99.Value/p50.Value)/2.326)
	mean := p50.Value * math.Exp(spread*spread/2)
	b := Busy{Share: rate * (float64(hold) + mean) / 1e9}
	if b.Share >= 1 {
		return b, nil
	}
	alone := m.use.aloneWait(p50.Value)
	waits := func(factor float64) []float64 {
		return lindley(rand.New(rand.NewPCG(seed, 3)), rate, float64(hold), alone*factor, func(z float64) float64 {
			return factor * p50.Value * math.Exp(spread*z)
		})
	}
	width := math.Exp(2 * offShape)
	least, expected, most := waits(p50.Lo/p50.Value/width), waits(1), waits(p50.Hi/p50.Value*width*rested(time.Duration(1e9/rate)))
	at := func(q float64) Estimate {
		return Estimate{Value: quantile(expected, q), Lo: quantile(least, q), Hi: quantile(most, q)}
	}
	b.P50, b.P99 = at(0.5), at(0.99)
	return b, nil
}

func (u use) aloneWait(otherwise float64) float64 {
	var waits []float64
	for _, r := range u.alone {
		if r.Wait != nil && r.Wait.TotalCount() > 0 {
			waits = append(waits, float64(r.Wait.ValueAtPercentile(50)))
		}
	}
	if len(waits) == 0 {
		return otherwise
	}
	return median(waits)
}

// lindley returns the waits of random arrivals at one lock, sorted.
func lindley(random *rand.Rand, rate, hold, alone float64, handoff func(z float64) float64) []float64 {
	waits := make([]float64, arrivals)
	var now, free float64 // when an acquisition arrives, and when the latest holder releases
	for i := range waits {
		now += random.ExpFloat64() / rate * 1e9
		granted := max(now+alone, free+handoff(random.NormFloat64()))
		if free < now {
			granted = now + alone
		}
		waits[i], free = granted-now, granted+hold
	}
	slices.Sort(waits)
	return waits
}
