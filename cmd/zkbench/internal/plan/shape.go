package plan

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/zkrecipes/zkrecipes/bench/load"
	"github.com/zkrecipes/zkrecipes/internal/unit"
	"github.com/zkrecipes/zkrecipes/recipes"
)

const (
	// offShape is the additional error of predicting an open load from drains, as a
	// logarithm.
	offShape = 0.15

	// asleep is the factor by which a handoff may be slower after the machines were idle for
	// resting or longer. In a drain no processor has time to sleep. On a virtual machine the
	// factor was 1.5 to 1.8: see testdata/results. It is assumed to be smaller on hardware.
	asleep  = 2
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
