//go:build !linux

package expiry

import "time"

const (
	// shortest is longer than the steps by which the wall clock is usually corrected.
	shortest = 500 * time.Millisecond
	// drifts is true because the wall clock is corrected all the time.
	drifts = true
)

var started = time.Now()

// total returns by how much the wall clock is ahead of the monotonic clock since the start.
func total() time.Duration {
	now := time.Now()
	return now.Round(0).Sub(started.Round(0)) - now.Sub(started)
}

func watch(func()) (end func()) { return func() {} }
