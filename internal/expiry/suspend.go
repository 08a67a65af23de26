package expiry

import (
	"sync"
	"time"
)

// Clock remembers when the machine was suspended since the clock was made. Go's monotonic clock
// stops during a suspension, so a time measured by it is older than it seems. All methods are safe
// for concurrent use.
//
// On Linux the time comes from the system's CLOCK_BOOTTIME. Elsewhere a jump of the wall clock
// against the monotonic one counts as a suspension. A pause of a whole virtual machine is not
// noticed if its clocks do not show it.
type Clock struct {
	total func() time.Duration // for how long the machine has been suspended, in all

	mu     sync.Mutex
	looked time.Time     // when total was called last
	seen   time.Duration // what it returned
	naps   []nap         // oldest first
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
// NewWith keeps the largest of several readings: after one that is too small, the next one would
// look like a suspension.
func NewWith(total func() time.Duration) *Clock {
	return &Clock{total: total, seen: max(total(), total(), total())}
}

// rest is how long Slept reuses its last reading, by the monotonic clock. Each grant calls Slept
// several times, and reading the system's clocks costs ten times as much as all else in Slept.
const rest = time.Millisecond

// Slept returns for how long the machine was suspended after t. It returns too much if t lies
// between the end of a suspension and the first reading after it. It may return too little for a
// millisecond after the machine wakes.
func (c *Clock) Slept(t time.Time) (slept time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); now.Sub(c.looked) >= rest {
		c.look(now)
	}
	for _, n := range c.naps {
		if !n.noticed.Before(t) {
			slept += n.lasted
		}
	}
	return slept
}

// look notices a suspension since the last call of look. The caller holds the mutex.
func (c *Clock) look(now time.Time) {
	c.looked = now
	total := c.total()
	grown := total - c.seen
	if grown >= shortest {
		c.naps = append(c.naps, nap{now, grown})
		if len(c.naps) > kept {
			c.naps[1].lasted += c.naps[0].lasted
			c.naps = c.naps[1:]
		}
	}
	if grown >= shortest || drifts {
		c.seen = total
	}
}

// OnWake calls f soon after each suspension, and perhaps when the clock is set. f must return
// soon. On a system without such a notification, f is never called. A goroutine runs until stop
// was called for each OnWake.
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

// wakes holds the functions to call at the end of a suspension.
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
