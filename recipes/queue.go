package recipes

import (
	"context"
	"time"
)

// Consumer is the taking end of a queue or a priority queue. It is a name and holds
// no state; sessions share what they have listed between all consumers of one
// path. Any number of goroutines may use it.
//
// There are two ways to take an element, and they may be mixed:
//
//   - Take is at most once. The element is deleted before it is returned, so no
//     two consumers ever get it. A consumer that dies with it has lost it.
//   - Receive is at least once. The element stays, claimed, until it is
//     acknowledged. It comes back when its consumer's session ends first. A consumer
//     that was paused beyond the end of its session may still work on it when it comes
//     back: see [Delivery].
type Consumer interface {
	// Path is the path the queue was made with.
	Path() string

	// Take deletes the first element that nobody has claimed, and returns it. Where
	// no such element exists, it waits for a watch.
	//
	// If ctx ends, or the session is lost, while Take waits, nothing was taken. If
	// that happens while a deletion is on its way to the server, the error matches
	// ErrUnknownOutcome too, and names the element. The element may be gone, and is
	// then lost. Nothing else can lose it while the session lives. A lost connection
	// does not: the deletion has a receipt, which tells whether it happened. Use
	// Receive where that is too little.
	//
	// Through a plugin Take is a Receive and an Ack, so that nothing is lost between
	// plugin and host. It then costs a write more and counts as a delivery. If the
	// plugin dies during the Ack, and the next one cannot resume the delivery, the error
	// matches ErrUnknownOutcome and names the element.
	//
	// Where elements of another library's queue are, Take, Receive and Peek fail with
	// ErrForeign.
	Take(ctx context.Context) (Element, error)

	// Receive claims the first element that nobody has claimed. Where no such element
	// exists, it waits for watches on the queue and on the claims. So it wakes when
	// an element is put, and when one comes back.
	//
	// After an error nothing stays claimed. If ctx ends first, a claim that was on
	// its way is given back in the background.
	Receive(ctx context.Context) (Delivery, error)

	// Peek returns the first element that nobody has claimed, without taking it, or
	// an error that matches ErrEmpty. The answer may be outdated on arrival.
	Peek(ctx context.Context) (Element, error)

	// Len returns the number of elements. It counts claimed elements but not dead
	// ones. The answer may be outdated on arrival.
	Len(ctx context.Context) (int, error)

	// DeadLetters returns the elements that were delivered QueueConfig.MaxDeliveries
	// times and never acknowledged, in the order in which they were put. They stay
	// until somebody deletes their znodes.
	DeadLetters(ctx context.Context) ([]Element, error)
}

// Queue hands each element that is put into it to one consumer, in the order in
// which they were put.
//
// Source: ZooKeeper Recipes, "Queues". Elements are sequential children of the
// path, named queue-<sequence> exactly as in the text. "The client does not need to
// issue another getChildren() until it exhausts the list obtained from the first":
// so it is here, for all consumers of a session together. This has two
// consequences:
//
//   - Elements come back by Delivery.Return or the end of a session. Those that were
//     listed before then go first.
//   - Consumers of different sessions meet at the head of their lists. One wins, and
//     the others go on to the next element, which costs each of them a read.
//
// Divergences from the text:
//
//   - Elements are persistent. The text creates them with the ephemeral flag, so
//     that an element is lost with its producer's session. That form is
//     QueueConfig.Ephemeral.
//   - The path has more children, made when they are first needed: receipts (see
//     Put), claims, dead and bound. Children whose names are not those of elements
//     are ignored, also those of other programs.
//   - Numbers in a listing are compared as serial numbers, so that the order
//     survives the wrap of the sequence after 2^31 elements. (ZooKeeper 3.8.0 itself
//     then gives the last number again and again. While the element of that name is
//     there, a Put fails with ErrNodeExists and says what to do.)
//
// A listing has to fit into one packet. At SessionConfig.MaxPacket bytes, a queue of
// more than about a thirtieth as many elements fails its consumers with
// ErrTooLarge. QueueConfig.Capacity keeps it from growing so long.
type Queue interface {
	Consumer

	// Put appends an element and returns the name that ZooKeeper gave it. On a
	// bounded queue that is full it waits, with a watch, until there is room.
	//
	// An element is never put twice. After a lost reply the creation is sent again,
	// with a receipt that tells whether it has happened. (A GUID in the element's
	// name, which finds locks again, would not do: an element that is not there may
	// have been taken already. Also the text gives another name.)
	//
	// If ctx ends, or the session is lost, after the creation was sent, the error
	// matches ErrUnknownOutcome too: the element may be in the queue, once. After any
	// other error it is not. Where the reply was lost and the element was taken
	// before its name could be read, the name is "".
	//
	// Through a plugin Put gives up a moment before ctx's deadline, and returns up to
	// a moment after ctx is cancelled. So the plugin can say that nothing was put.
	// Where the plugin does not, the error matches ErrUnknownOutcome.
	Put(ctx context.Context, data []byte) (ElementID, error)

	// PutMany appends elements in one transaction, next to each other and in order:
	// all of them, or none. It is one write, whose packet must fit into
	// SessionConfig.MaxPacket (ErrTooLarge). More elements than Capacity are
	// ErrInvalid. PutMany returns as many names as elements, on the terms of Put.
	// Without elements it sends nothing.
	PutMany(ctx context.Context, data ...[]byte) ([]ElementID, error)
}

// PriorityQueue is a queue whose elements have priorities: lower numbers go
// first, "just like UNIX", and equal ones in the order in which they were put.
//
// Source: ZooKeeper Recipes, "Priority Queues". Elements are named
// queue-YY-<sequence>; YY is the priority in two digits. When the watch on the queue
// fires, a consumer discards its list, so that an element that goes before those
// that were listed does not wait. In all else it is a [Queue]. The two do not see
// each other's elements.
type PriorityQueue interface {
	Consumer

	// Put is Queue.Put with a priority from 0 to MaxPriority.
	Put(ctx context.Context, priority int, data []byte) (ElementID, error)

	// PutMany is Queue.PutMany; all elements have the same priority.
	PutMany(ctx context.Context, priority int, data ...[]byte) ([]ElementID, error)
}

// MaxPriority is the last priority: two digits.
const MaxPriority = 99

// ElementID is the name of an element's znode below the queue's path, such as
// queue-0000000012.
type ElementID string

// Element is what was put into a queue.
type Element struct {
	ID       ElementID
	Priority int // of a PriorityQueue; otherwise 0
	Data     []byte
	// Put is when it was put, by the server's clock.
	Put time.Time
}
