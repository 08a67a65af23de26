package recipes

import (
	"fmt"
	"math"
)

// QueueConfig says how to put and how to take. The zero value is good. Nothing of it
// is stored in ZooKeeper, so sessions that share a queue must agree.
type QueueConfig struct {
	// Ephemeral puts elements as the text does: they are deleted with the session
	// that put them, taken or not. A session that another plugin resumes keeps them.
	Ephemeral bool

	// Capacity bounds the number of elements, or is 0 for no bound. Claimed elements
	// count, dead ones do not. A Put that finds the queue full waits: back pressure.
	//
	// The bound is exact, however many put at the same time, if all have the same
	// Capacity. Each put is one transaction with a change of the child node "bound".
	// It is made only if nobody else has put since the elements were counted. That
	// costs a bounded Put two reads, and another attempt whenever another was faster.
	// Consumers pay nothing.
	Capacity int

	// MaxDeliveries is how often Receive delivers an element before the element goes
	// to the dead letters, in one transaction. It goes there at the last Return or,
	// after the end of a session, when it would be delivered next. 0 is no limit.
	// Take does not count as a delivery, but also moves elements at the limit.
	MaxDeliveries int

	// Dialect says who puts and takes at the same path; "" is DefaultDialect. Curator
	// shares the elements of Curator's SimpleDistributedQueue and of ZooKeeper's own
	// DistributedQueue, and has no PriorityQueue. Kazoo shares those of kazoo's Queue. A
	// Queue puts them with kazoo's default priority, 100, and both forms take them by
	// priority.
	//
	// Consumers of those libraries see no claims. So with a dialect there is only Take,
	// and Receive fails with ErrInvalid, as do Capacity and MaxDeliveries. Take is at most
	// once, and so is the taking of the others: an element whose deletion was answered
	// to nobody is lost. Receipts are below a znode beside the path, PATH-receipts,
	// because kazoo's consumers take every child of the path.
	Dialect Dialect
}

// Validate reports what is wrong with the configuration, as an ErrInvalid.
func (c QueueConfig) Validate() error {
	switch {
	case c.Capacity < 0 || c.Capacity > math.MaxInt32:
		return fmt.Errorf("%w: Capacity is %d; it must be between 0, for no bound, and 2^31-1", ErrInvalid, c.Capacity)
	case c.MaxDeliveries < 0 || c.MaxDeliveries > math.MaxInt32:
		return fmt.Errorf("%w: MaxDeliveries is %d; it must be between 0, for no limit, and 2^31-1", ErrInvalid, c.MaxDeliveries)
	}
	dialect, err := c.Dialect.Normalize()
	if err == nil && dialect != DefaultDialect && (c.Capacity > 0 || c.MaxDeliveries > 0) {
		err = fmt.Errorf("%w: Capacity and MaxDeliveries are for the default dialect: those who use %s know of neither", ErrInvalid, dialect)
	}
	return err
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
