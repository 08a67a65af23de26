package load

import "time"

// shape decides when the measured part of a load begins and ends, and who joins
// again. It is asked by one holder at a time.
type shape interface {
	// begins reports whether the measured part begins when the present holder
	// leaves, so long after the first grant of the load and with so many turns
	// taken.
	begins(running time.Duration, turns int64) bool
	// steady reports whether the load had become steady when it began.
	steady() bool
	// ends reports whether the measured part has ended with a grant that
	// completed so many operations in so much time.
	ends(operations int64, elapsed time.Duration) bool
	// again reports whether a contender that has left joins again.
	again() bool
}

// drain begins with the first grant and ends with the last.
type drain struct{ contenders int }

func (d drain) begins(time.Duration, int64) bool          { return true }
func (d drain) steady() bool                              { return true }
func (d drain) ends(handoffs int64, _ time.Duration) bool { return handoffs == int64(d.contenders)-1 }
func (d drain) again() bool                               { return false }

// cycle begins with the first grant after the warm-up. It ends with the first grant
// after the duration, but not before as many handoffs as there are contenders. In
// fewer, nobody has both asked and been granted, and no wait is known.
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
