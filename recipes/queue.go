package recipes

import (
	"context"
	"fmt"
	"math"
	"time"
)

// Consumer is the consuming side of a queue or a priority queue. It is only a path and a
// configuration; a session shares one listing between all consumers of a path. It is safe for
// concurrent use.
//
// There are two ways to consume an element, and they may be mixed:
//
//   - Take is at most once. The element is deleted before it is returned, so two consumers
//     never get it. If the consumer dies, the element is lost.
//   - Receive is at least once. The element remains, claimed, until it is acknowledged. If
//     its consumer's session ends first, it is delivered again. A consumer that was paused
//     beyond the end of its session may still work on it then: see [Delivery].
type Consumer interface {
	// Path is the path of the queue.
	Path() string

	// Take deletes the first unclaimed element and returns it. If all are claimed or the
	// queue is empty, it waits for a watch.
	//
	// If ctx ends, or the session is lost, while Take waits, nothing was taken. If that
	// happens after a deletion was sent, the error also matches ErrUnknownOutcome and names
	// the element: it may be deleted, and is then lost. Nothing else loses an element while
	// the session lives. After a lost connection, the receipt of the deletion shows whether
	// it was committed. If at most once is not enough, use Receive.
	//
	// Through a plugin the deletion also writes the element into a receipt, in the same
	// transaction. So if the plugin dies before it answers, Take gets the element from the
	// plugin that resumes the session. If none does, the error matches ErrUnknownOutcome, and
	// names the element if the dead plugin could report it. The element remains in the receipt
	// until the session uses it again or ends.
	//
	// If the path has elements of another library, Take, Receive and Peek fail with
	// ErrForeign.
	Take(ctx context.Context) (Element, error)

	// TakeMany is Take for up to most elements, from 1. It waits for the first one, and takes
	// the unclaimed elements that follow it in the list, in order and in one transaction: all
	// of them, or none. If another consumer was faster with one of them, it tries again.
	//
	// TakeMany returns fewer elements than most if the queue has fewer, if more would not fit
	// into one packet (SessionConfig.MaxPacket) together with their data, or if other consumers
	// have just taken some of the first ones. It returns at least one, unless it fails. Its
	// errors are those of Take, and an unknown outcome is that of the whole batch.
	TakeMany(ctx context.Context, most int) ([]Element, error)

	// Receive claims the first unclaimed element. If all are claimed or the queue is empty, it
	// waits for watches on the queue and on the claims. So it wakes when an element is put or
	// returned.
	//
	// After an error nothing remains claimed. If ctx ends first, a claim that was sent is
	// returned in the background.
	Receive(ctx context.Context) (Delivery, error)

	// ReceiveMany is Receive for up to most elements, as TakeMany is Take: it claims all of
	// them in one transaction, or none. Each is a delivery of its own, and can be acknowledged
	// or returned alone. Their tokens are equal.
	ReceiveMany(ctx context.Context, most int) ([]Delivery, error)

	// AckMany acknowledges deliveries that this session has received from this queue, in one
	// transaction for as many as fit into a packet. It is Delivery.Ack for each of them: those
	// whose claims were lost do not keep the others from being acknowledged. The error joins
	// those of all deliveries; Ack of a delivery returns its own.
	AckMany(ctx context.Context, deliveries ...Delivery) error

	// Peek returns the first unclaimed element without taking it, or an error that matches
	// ErrEmpty. The answer may be outdated when it arrives.
	Peek(ctx context.Context) (Element, error)

	// Len returns the number of elements. It counts claimed elements but not dead letters.
	// The answer may be outdated when it arrives.
	Len(ctx context.Context) (int, error)

	// DeadLetters returns the elements that were delivered QueueConfig.MaxDeliveries times
	// and never acknowledged, in the order in which they were put. They remain until a
	// client deletes their znodes.
	DeadLetters(ctx context.Context) ([]Element, error)
}

// Queue delivers each element to one consumer, in the order in which the elements were put.
//
// Source: ZooKeeper Recipes, "Queues". Elements are sequential children of the path, named
// queue-<sequence> as in the text. "The client does not need to issue another getChildren()
// until it exhausts the list obtained from the first": all consumers of a session share that
// list. This has two consequences:
//
//   - An element can be returned, by Delivery.Return or the end of a session. Elements that
//     are already listed then come before it.
//   - Consumers of different sessions compete for the first element of their lists. One gets
//     it, and the others try the next element, which costs each of them a read.
//
// Divergences from the text:
//
//   - Elements are persistent. The text creates them with the ephemeral flag, so that an
//     element is lost with its producer's session. That form is QueueConfig.Ephemeral.
//   - The path has more children, created when they are first needed: receipts (see Put),
//     claims, dead and bound. Children that do not have an element's name are ignored.
//   - Numbers in a listing are compared as serial numbers, so that the order survives the
//     overflow of the sequence after 2^31 elements. (ZooKeeper 3.8.0 then repeats the last
//     number. While the element with that name exists, Put fails with ErrNodeExists and says
//     what to do.)
//
// A listing is bounded by SessionConfig.MaxListing. By default consumers list 3 million elements, and
// fail with ErrTooLarge if there are more. QueueConfig.Capacity prevents that.
type Queue interface {
	Consumer

	// Put appends an element and returns the name that ZooKeeper gave it. If a bounded queue
	// is full, Put waits for room, with a watch.
	//
	// An element is never put twice. After a lost reply Put retries with a receipt, which
	// shows whether the element was created. (A GUID in the element's name, as for locks, is
	// not enough: an element that does not exist may have been taken already. The text also
	// requires another name.)
	//
	// If ctx ends, or the session is lost, after the creation was sent, the error also
	// matches ErrUnknownOutcome: the element may be in the queue, once. After any other
	// error it is not. If the reply was lost and the element was taken before its name could
	// be read, the name is "".
	//
	// Through a plugin Put returns up to a second after ctx ends. In this time the plugin can
	// report that nothing was put. If it does not, the error matches ErrUnknownOutcome. The
	// same holds for Take.
	Put(ctx context.Context, data []byte) (ElementID, error)

	// PutMany appends elements in one transaction, adjacent and in order: all of them, or
	// none. It is one write, which must fit into SessionConfig.MaxPacket (ErrTooLarge). More
	// elements than Capacity are ErrInvalid. PutMany returns one name per element; its
	// errors are those of Put. Without elements it sends nothing.
	PutMany(ctx context.Context, data ...[]byte) ([]ElementID, error)
}

// PriorityQueue is a queue whose elements have priorities: lower numbers come first, "just
// like UNIX", and equal ones in the order in which they were put.
//
// Source: ZooKeeper Recipes, "Priority Queues". Elements are named queue-YY-<sequence>; YY is
// the priority in two digits. After a put, a consumer discards its list, so that a more urgent
// element does not wait. The text discards it whenever the watch on the queue fires, so also
// after each Take. Otherwise it is a [Queue]. The two ignore each
// other's elements.
type PriorityQueue interface {
	Consumer

	// Put is Queue.Put with a priority from 0, the highest, to LowestPriority.
	Put(ctx context.Context, priority int, data []byte) (ElementID, error)

	// PutMany is Queue.PutMany; all elements have the same priority.
	PutMany(ctx context.Context, priority int, data ...[]byte) ([]ElementID, error)
}

// ElementID is the name of an element's znode below the queue's path, such as
// queue-0000000012.
type ElementID string

// Element is an element of a queue.
type Element struct {
	ID       ElementID
	Priority int // of a PriorityQueue; otherwise 0
	Data     []byte
	// Put is when the element was put, by the server's clock.
	Put time.Time
}

// QueueConfig configures a Queue or a PriorityQueue. The zero value is the default. It is not
// stored in ZooKeeper, so sessions that share a queue must use the same.
type QueueConfig struct {
	// Ephemeral creates elements as the text does: they are deleted with the session that
	// put them, taken or not. A session that another plugin resumes keeps them.
	Ephemeral bool

	// Capacity bounds the number of elements; 0 means no bound. Claimed elements count,
	// dead letters do not. If the queue is full, Put waits: back pressure.
	//
	// The bound is exact for any number of producers with the same Capacity. Each put is one
	// transaction with a change of the child node "bound". It is committed only if no other
	// producer has put since the elements were counted. That costs a bounded Put two reads,
	// and another attempt if another producer was faster. Consumers pay nothing.
	Capacity int

	// MaxDeliveries is how often Receive delivers an element before it becomes a dead
	// letter, in one transaction. That happens at the last Return or, after the end of a
	// session, when the element would be delivered next. 0 means no limit. Take does not
	// count as a delivery, but also moves elements at the limit.
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

// ValidateBatch reports what is wrong with taking or receiving up to most elements, as an
// ErrInvalid.
func (c QueueConfig) ValidateBatch(most int) error {
	if most < 1 || most > math.MaxInt32 {
		return fmt.Errorf("%w: up to %d elements at once; between 1 and 2^31-1", ErrInvalid, most)
	}
	return nil
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

// Delivery is a received element that must be acknowledged.
//
// It is a [Grant]. Done closes when the claim is lost, because another consumer may then
// receive the element. Write commits only while the claim is held. Its znode is the ephemeral
// claim, claims/<element>-<attempt>. Its token grows with every delivery of the element.
//
// When a session ends, its element is delivered to another consumer (CURATOR-605). If the
// first consumer runs, its Done closes before that.
type Delivery interface {
	Grant

	// Element is the received element.
	Element() Element

	// Attempt counts the deliveries of the element, from 1. It is the version of the
	// element's znode, which every claim sets.
	Attempt() int

	// Ack deletes the element and its claim in one transaction, if the claim is held. It
	// closes Done before it sends anything.
	//
	// Ack returns nil when the element is deleted. If the claim was lost, the error matches
	// ErrNotHeld: the element was or will be delivered again. If the session is lost after
	// the request was sent, the error also matches ErrUnknownOutcome, so test for that
	// first. That is also the error if the plugin dies before it answers, and the next one
	// cannot resume the delivery. If ctx ends first, Ack returns ctx's error and continues
	// in the background; another call waits for it and returns its result. While the server
	// throttles, Ack retries. After Return the error matches ErrReleased.
	Ack(ctx context.Context) error

	// Return puts the element back into its place, to be delivered again. After the last
	// attempt it moves the element to the dead letters. Its errors are those of Ack.
	Return(ctx context.Context) error
}
