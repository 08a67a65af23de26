package host

import (
	"math/rand/v2"
	"time"
)

// backoff computes the waits between attempts: exponential, from least to most.
type backoff struct{ least, most, last time.Duration }

// next doubles the wait and returns it with a jitter of up to 20 % either way.
func (b *backoff) next() time.Duration {
	b.last = min(max(2*b.last, b.least), b.most)
	return time.Duration(float64(b.last) * (0.8 + 0.4*rand.Float64()))
}

// ran resets the wait to least if the plugin ran for at least most.
func (b *backoff) ran(d time.Duration) {
	if d >= b.most {
		b.last = 0
	}
}
