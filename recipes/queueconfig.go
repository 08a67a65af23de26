package recipes

import (
	"fmt"
	"math"
)

// QueueConfig says how to put and how to take. Its zero value is good. It is
// each session's own: nothing of it is stored, so those who share a queue must
// agree.
type QueueConfig struct {
	// Ephemeral puts elements as the text does: they go with the session that
	// put them, taken or not.
	Ephemeral bool

	// Capacity bounds the number of elements, claimed ones included and dead
	// ones not; 0 is no bound. A Put that finds the queue full waits: back
	// pressure. The bound is exact, however many put at the same time, as long
	// as all have the same: each put is one transaction with a change of the
	// child node "bound", made only if nobody else has put since the elements
	// were counted. That costs a bounded Put two reads, and another attempt
	// whenever somebody else was faster; consumers pay nothing.
	Capacity int

	// MaxDeliveries is how often an element is delivered by Receive before it
	// goes to the dead letters, in one transaction: at the last Return, or,
	// after the end of a session, when it would be delivered next. 0 is no
	// limit. Take counts no delivery but moves elements whose time is up.
	MaxDeliveries int
}

// Validate reports what is wrong with the configuration, as an ErrInvalid.
func (c QueueConfig) Validate() error {
	switch {
	case c.Capacity < 0 || c.Capacity > math.MaxInt32:
		return fmt.Errorf("%w: Capacity is %d; from 0, which is no bound, to 2^31-1", ErrInvalid, c.Capacity)
	case c.MaxDeliveries < 0 || c.MaxDeliveries > math.MaxInt32:
		return fmt.Errorf("%w: MaxDeliveries is %d; from 0, which is no limit, to 2^31-1", ErrInvalid, c.MaxDeliveries)
	}
	return nil
}

// ValidatePut reports what is wrong with putting n elements of a priority, as an
// ErrInvalid.
func (c QueueConfig) ValidatePut(priority, n int) error {
	switch {
	case priority < 0 || priority > MaxPriority:
		return fmt.Errorf("%w: priority %d; between 0 and %d", ErrInvalid, priority, MaxPriority)
	case c.Capacity > 0 && n > c.Capacity:
		return fmt.Errorf("%w: %d elements at once; Capacity is %d", ErrInvalid, n, c.Capacity)
	}
	return nil
}
