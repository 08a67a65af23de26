package load

import "time"

// shape decides when the measured part of a load begins and ends, and who joins
// again. It holds no state.
type shape interface {
	// begins reports whether the measured part begins when the present holder
	// leaves, so long after the first grant of the load.
	begins(running time.Duration) bool
	// ends reports whether the measured part has ended with a grant that
	// completed so many operations in so much time.
	ends(operations int64, elapsed time.Duration) bool
	// again reports whether a contender that has left joins again.
	again() bool
}

// drain begins with the first grant and ends with the last.
type drain struct{ contenders int }

func (d drain) begins(time.Duration) bool                 { return true }
func (d drain) ends(handoffs int64, _ time.Duration) bool { return handoffs == int64(d.contenders)-1 }
func (d drain) again() bool                               { return false }

// cycle begins with the first grant after the warm-up and ends with the first
// after the duration.
type cycle struct{ warmup, duration time.Duration }

func (c cycle) begins(running time.Duration) bool        { return running >= c.warmup }
func (c cycle) ends(_ int64, elapsed time.Duration) bool { return elapsed >= c.duration }
func (c cycle) again() bool                              { return true }
