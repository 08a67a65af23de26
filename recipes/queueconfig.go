package recipes

import (
	"fmt"
	"math"
)

// QueueConfig configures a Queue or a PriorityQueue. The zero value is the default. It is not
// stored in ZooKeeper, so sessions that share a queue must use the same.
type QueueConfig struct {
	// Ephemeral creates elements as the text does: they are deleted with the session that
	// put them, taken or not. A session that another plugin resumes keeps them.
	Ephemeral bool

	// Capacity bounds the number of elements; 0 is no bound. Claimed elements count, dead
	// letters do not. If the queue is full, Put waits: back pressure.
	//
	// The bound is exact for any number of producers with the same Capacity. Each put is one
	// transaction with a change of the child node "bound". It is committed only if no other
	// producer has put since the elements were counted. That costs a bounded Put two reads,
	// and another attempt if another producer was faster. Consumers pay nothing.
	Capacity int

	// MaxDeliveries is how often Receive delivers an element before it becomes a dead
	// letter, in one transaction. That happens at the last Return or, after the end of a
	// session, when the element would be delivered next. 0 is no limit. Take does not count
	// as a delivery, but also moves elements at the limit.
	MaxDeliveries int

	// Dialect selects the libraries that share the queue; "" is ZooKeeper. Curator
	// shares it with Curator's SimpleDistributedQueue and ZooKeeper's own DistributedQueue,
	// and has no PriorityQueue. Kazoo shares it with kazoo's Queue. A Queue puts elements
	// with kazoo's default priority, 100, and both Queue and PriorityQueue take them by
	// priority.
	//
	// Consumers of those libraries ignore claims. So in a dialect there is only Take:
	// Receive, Capacity and MaxDeliveries are ErrInvalid. Take is at most once, in those
	// libraries too: if the reply to a deletion is lost, the element is lost. Receipts are
	// below a znode beside the path, PATH-receipts, because kazoo's consumers take every
	// child of the path.
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
	if err == nil && dialect != ZooKeeper && (c.Capacity > 0 || c.MaxDeliveries > 0) {
		err = fmt.Errorf("%w: Capacity and MaxDeliveries are for the default dialect: %s supports neither", ErrInvalid, dialect)
	}
	return err
}

// ValidatePut reports what is wrong with putting n elements of a priority, as an
// ErrInvalid.
func (c QueueConfig) ValidatePut(priority, n int) error {
	switch {
	case priority < 0 || priority > LowestPriority:
		return fmt.Errorf("%w: priority %d; between 0 and %d", ErrInvalid, priority, LowestPriority)
	case c.Capacity > 0 && n > c.Capacity:
		return fmt.Errorf("%w: %d elements at once; Capacity is %d", ErrInvalid, n, c.Capacity)
	}
	return nil
}
