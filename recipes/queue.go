package recipes

import (
	"context"
	"time"
)

// Consumer is the taking end of a queue or a priority queue. It is a name and
// holds no state of its own; sessions share what they have listed between all
// consumers of one path. Any number of goroutines may use it.
//
// There are two ways to take an element, and they may be mixed:
//
//   - Take is at most once: the element is deleted before it is returned, so no
//     two consumers ever get it, and a consumer that dies with it has lost it.
//   - Receive is at least once: the element stays, claimed, until it is
//     acknowledged, and comes back when its consumer's session ends first. A
//     consumer that was paused past the end of its session may still be at work
//     on it when it comes back: see [Delivery].
type Consumer interface {
	// Path is the path the queue was made with.
	Path() string

	// Take deletes the first element that nobody has claimed, and returns it.
	// While there is none it waits for a watch.
	//
	// If ctx ends, or the session is lost, while it waits, nothing was taken.
	// If that happens while a deletion is on its way to the server, the error
	// matches ErrUnknownOutcome too and names the element: it may be gone, and
	// is then lost. Nothing else can lose it while the session lives; a lost
	// connection does not, because the deletion is made with a receipt that
	// tells whether it was ours. Use Receive where that is too little.
	//
	// Through a plugin Take is a Receive and an Ack, so that nothing is lost
	// between plugin and host; it then costs a write more and counts as a
	// delivery.
	Take(ctx context.Context) (Element, error)

	// Receive claims the first element that nobody has claimed. While there is
	// none it waits for watches: on the queue and on the claims, so that it
	// wakes when an element is put and when one comes back.
	//
	// On an error nothing stays claimed: if ctx ends first, a claim that was
	// on its way is given back in the background.
	Receive(ctx context.Context) (Delivery, error)

	// Peek returns the first element that nobody has claimed, without taking
	// it, or an error that matches ErrEmpty. It may be outdated on arrival.
	Peek(ctx context.Context) (Element, error)

	// Len is the number of elements, claimed ones included, dead ones not. It
	// may be outdated on arrival.
	Len(ctx context.Context) (int, error)

	// DeadLetters returns the elements that were delivered
	// QueueConfig.MaxDeliveries times and never acknowledged, in the order in
	// which they were put. They stay until somebody deletes their znodes.
	DeadLetters(ctx context.Context) ([]Element, error)
}

// Queue hands each element that is put into it to one consumer, in the order in
// which they were put.
//
// Source: ZooKeeper Recipes, "Queues". Elements are sequential children of the
// path, named queue-<sequence> exactly as in the text. "The client does not
// need to issue another getChildren() until it exhausts the list obtained from
// the first": so it is here, for all consumers of a session together. Two
// consequences: of elements that come back (Delivery.Return, the end of a
// session) those that were listed meanwhile go first; and consumers of
// different sessions meet at the head of their lists, where one wins and the
// others go on to the next, which costs each of them a read.
//
// Divergences from the text:
//
//   - Elements are persistent. The text creates them with the ephemeral flag,
//     so that what a producer has put is lost with its session; that form is
//     QueueConfig.Ephemeral.
//   - Below the path there are children more, made when they are first needed:
//     receipts (see Put), claims, dead and bound. Children whose names are not
//     elements' are ignored, those of other programs too.
//   - A listing is compared as serial numbers, so that the order survives the
//     wrap of the sequence after 2^31 elements. (ZooKeeper 3.8.0 itself gives
//     the last number again and again from there on: a Put then fails with
//     ErrNodeExists while the element of that name is there, and says what to
//     do.)
//
// A listing has to fit into one packet: at SessionConfig.MaxPacket bytes, a queue of
// more than about a thirtieth as many elements fails its consumers with
// ErrTooLarge. Capacity keeps it from growing so long.
type Queue interface {
	Consumer

	// Put appends an element and returns the name that ZooKeeper gave it. On a
	// bounded queue that is full it waits, with a watch, until there is room.
	//
	// An element is never put twice: where the reply is lost, the creation is
	// sent again together with a receipt that tells whether it has happened.
	// (A GUID in the element's name, which finds locks again, would not do:
	// an element that is not there may have been taken already. It would also
	// not be the name that the text gives.) If ctx ends, or the session is
	// lost, after the creation was sent, the error matches ErrUnknownOutcome
	// too: the element may be in the queue, once. After any other error it is
	// not. Where the reply was lost and the element was taken before its name
	// could be read, the name is "".
	//
	// Through a plugin it gives up a moment before ctx's deadline, and returns up
	// to a moment after ctx is cancelled, so that the plugin can say that nothing
	// was put. Where it does not, the error matches ErrUnknownOutcome.
	Put(ctx context.Context, data []byte) (ElementID, error)

	// PutMany appends elements in one transaction, next to each other and in
	// order: all of them, or none. It is one write, whose packet must fit into
	// SessionConfig.MaxPacket (ErrTooLarge). More elements than a bounded queue has
	// room for at all are ErrInvalid. It returns as many names as elements, on
	// the terms of Put; no elements is no request.
	PutMany(ctx context.Context, data ...[]byte) ([]ElementID, error)
}

// PriorityQueue is a queue whose elements have priorities: lower numbers go
// first, "just like UNIX", and equal ones in the order in which they were put.
//
// Source: ZooKeeper Recipes, "Priority Queues". Elements are named
// queue-YY-<sequence>, YY being the priority in two digits. A consumer throws
// its list away when the watch on the queue fires, so that an element that goes
// before those that were listed is not kept waiting. In all else it is a
// [Queue]; the two do not see each other's elements.
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
