package load

import (
	"math"
	"time"
)

// shape decides when the measured part of a load begins and ends, and whether contenders
// join again. One holder at a time calls it.
type shape interface {
	// begins reports whether the measured part begins when the current holder leaves. It
	// gets the time since the first grant of the load, and the turns taken.
	begins(running time.Duration, turns int64) bool
	// steady reports whether the load was steady when the measured part began.
	steady() bool
	// ends reports whether the measured part ends with this grant. It gets the operations
	// and the time until then.
	ends(operations int64, elapsed time.Duration) bool
	// again reports whether a contender that has left joins again.
	again() bool
}

// turnsAlone is how many turns a drain of one contender measures, because a single
// contender makes no handoff.
const turnsAlone = 100

type drain struct{ contenders int }

func (d drain) begins(time.Duration, int64) bool { return true }
func (d drain) steady() bool                     { return true }
func (d drain) again() bool                      { return d.contenders == 1 }

func (d drain) ends(operations int64, _ time.Duration) bool {
	if d.contenders == 1 {
		return operations == turnsAlone
	}
	return operations == int64(d.contenders)-1
}

// cycle begins with the first grant after the warm-up. It ends with the first grant after
// the duration, but has at least as many handoffs as contenders. With fewer, none of the
// requests of the measured part would be granted, and there would be no waits to record.
type cycle struct {
	warmup
	duration   time.Duration
	contenders int64
}

func newCycle(l Load) *cycle {
	return &cycle{warmup: warmup{shortest: l.Warmup}, duration: l.Duration, contenders: int64(len(l.Sessions))}
}

func (c *cycle) begins(running time.Duration, turns int64) bool { return c.done(running, turns) }
func (c *cycle) again() bool                                    { return true }

func (c *cycle) ends(handoffs int64, elapsed time.Duration) bool {
	return elapsed >= c.duration && handoffs >= c.contenders
}

const (
	// steadyWindows is how many windows in a row must agree, and steadyWithin how far each
	// may be from their mean.
	steadyWindows = 3
	steadyWithin  = 0.10
	// windowTurns is the smallest number of turns in a window.
	windowTurns = 10
	// longestWarmup limits a warm-up that does not become steady, in multiples of the
	// shortest.
	longestWarmup = 8
)

// warmup decides when a load has warmed up: it has run for shortest, and the rates of the
// last three windows lie within 10 % of their mean. A window is a quarter of shortest and
// at least ten turns. After eight times shortest the warm-up ends even if it is not steady.
type warmup struct {
	shortest time.Duration

	since  time.Duration // when the current window began
	turns  int64         // how many turns had been taken by then
	rates  [steadyWindows]float64
	filled int
}

// done reports whether the warm-up has ended. It is called at each grant of the warm-up.
func (w *warmup) done(running time.Duration, turns int64) bool {
	if length := running - w.since; length >= w.shortest/4 && turns-w.turns >= windowTurns {
		copy(w.rates[:], w.rates[1:])
		w.rates[steadyWindows-1] = float64(turns-w.turns) / max(length, 1).Seconds()
		w.filled++
		w.since, w.turns = running, turns
	}
	return running >= w.shortest && (w.steady() || running >= longestWarmup*w.shortest)
}

func (w *warmup) steady() bool {
	if w.filled < steadyWindows {
		return false
	}
	var sum float64
	for _, rate := range w.rates {
		sum += rate
	}
	mean := sum / steadyWindows
	for _, rate := range w.rates {
		if math.Abs(rate-mean) > steadyWithin*mean {
			return false
		}
	}
	return true
}
