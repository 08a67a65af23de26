package load

import (
	"math/rand/v2"
	"time"
)

// pacer gives the intended starts of an open load, each counted from the
// beginning, in order. It sleeps never and can be tested without.
type pacer func() time.Duration

// newPacer returns a pacer of rate arrivals a second. The same seed gives the same
// arrivals.
func newPacer(arrivals Arrivals, rate float64, seed uint64) pacer {
	gap := float64(time.Second) / rate
	if arrivals == Poisson {
		random, at := rand.New(rand.NewPCG(seed, 1)), 0.0
		return func() time.Duration {
			at += gap * random.ExpFloat64()
			return time.Duration(at)
		}
	}
	n := 0
	return func() time.Duration {
		n++
		return time.Duration(gap * float64(n-1))
	}
}
