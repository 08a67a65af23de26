package expiry

import (
	"sync"
	"time"
)

// Clock remembers when the machine was suspended since the clock was made. Go's monotonic clock
// stands then, so what was measured by it is older than it seems. All methods are safe for concurrent
// use.
//
// On Linux the time comes from the system's CLOCK_BOOTTIME. Elsewhere a jump of the wall clock
// against the monotonic one counts as a suspension. A pause of a whole virtual machine is not noticed
// if its clocks do not tell.
type Clock struct {
	total func() time.Duration // for how long the machine has been suspended, in all

	mu   sync.Mutex
	seen time.Duration // of total
	naps []nap         // oldest first
}

// nap is a suspension. It ended before it was noticed.
type nap struct {
	noticed time.Time
	lasted  time.Duration
}

// kept is the number of suspensions that a Clock remembers one by one.
const kept = 8

// New returns a Clock.
func New() *Clock { return NewWith(total) }

// NewWith is New with another source of the time for which the machine has been suspended, for tests.
// It reads it more than once: a reading that is too small would make the next one a suspension.
func NewWith(total func() time.Duration) *Clock {
	return &Clock{total: total, seen: max(total(), total(), total())}
}

// Slept returns for how long the machine was suspended after t. It returns too much if t lies between
// the end of a suspension and the first call after it. It returns too little only if the machine is
// suspended during the call.
func (c *Clock) Slept(t time.Time) (slept time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.total()
	if grown := now - c.seen; grown >= shortest {
		c.naps = append(c.naps, nap{time.Now(), grown})
		if len(c.naps) > kept {
			c.naps[1].lasted += c.naps[0].lasted
			c.naps = c.naps[1:]
		}
		c.seen = now
	} else if drifts {
		c.seen = now
	}
	for _, n := range c.naps {
		if !n.noticed.Before(t) {
			slept += n.lasted
		}
	}
	return slept
}

// OnWake calls f soon after each suspension, and perhaps when somebody sets the clock. f must
// return soon. Where the system does not tell, f is never called. A goroutine runs until stop was
// called for each OnWake.
func OnWake(f func()) (stop func()) {
	wakes.mu.Lock()
	defer wakes.mu.Unlock()
	w := &waiter{f}
	if wakes.waiters == nil {
		wakes.waiters = make(map[*waiter]bool)
	}
	wakes.waiters[w] = true
	if len(wakes.waiters) == 1 {
		wakes.end = watch(wakes.tell)
	}
	return func() {
		wakes.mu.Lock()
		defer wakes.mu.Unlock()
		if !wakes.waiters[w] {
			return
		}
		delete(wakes.waiters, w)
		if len(wakes.waiters) == 0 {
			wakes.end()
		}
	}
}

// wakes has who waits for the end of a suspension.
var wakes callers

type callers struct {
	mu      sync.Mutex
	waiters map[*waiter]bool
	end     func()
}

type waiter struct{ f func() }

func (c *callers) tell() {
	c.mu.Lock()
	all := make([]func(), 0, len(c.waiters))
	for w := range c.waiters {
		all = append(all, w.f)
	}
	c.mu.Unlock()
	for _, f := range all {
		f()
	}
}
