package recipes

import "context"

// Lock is a mutual exclusion lock: of all contenders for one path, in any process,
// at most one is granted at a time, in the order in which they joined. A Lock is a
// name and a way of waiting, and holds no state. Any number of goroutines may use
// it; each Acquire is another contender. A Lock is not re-entrant: a goroutine that
// acquires twice waits for itself.
//
// There is no re-entrant form. Go has no identity of a goroutine that a lock could
// count by. Other libraries count by thread; a count kept by the session would let
// in every goroutine of the process that uses it. An explicit owner's token would
// be honest, and exists: it is the Hold. Code that runs with or without the lock
// takes a Hold as an argument, or in its context. If it is given none, it acquires
// one, and then it also releases it. A counter around that would hide which code
// has to release, and what is left to do when the hold is lost at depth two.
//
// A hold cannot be handed to a chosen contender. A contender that finds itself
// first in line considers itself granted, so naming another could not hold it
// back. A PriorityLock is granted by a transaction, and has PriorityHold.HandOff.
//
// Source: ZooKeeper Recipes, "Locks", with "Recoverable Errors and the GUID".
// Contenders are ephemeral sequential children of the path, named
// _c_<guid>-lock-<sequence>, or by Handoff lock-<sequence>. Curator's
// InterProcessMutex and go-zookeeper's Lock use the first form, so they can stand in
// the same line. They cannot do so across the wrap of the sequence, which they do
// not survive. Children of other names are ignored. A holder by Handoff that writes
// makes the child guards-lock-9999999999, below which is what guards its writes.
type Lock interface {
	// Path is the path the lock was made with.
	Path() string

	// Acquire joins the line and waits for its turn. Most callers want this.
	//
	// If ctx ends first, Acquire returns ctx's error and the contender leaves the
	// line (see the package comment for a connection that is down). If the session
	// is lost, the error matches ErrSessionLost. If another client deletes the
	// waiting contender's znode, the error matches ErrRemoved. A waiter learns of
	// that when it next looks, at the latest when its turn would have come. After
	// any error nothing is held.
	//
	// A lost connection is not an error: the contender keeps its place and looks
	// again when the connection is back.
	Acquire(ctx context.Context) (Hold, error)

	// TryAcquire is Acquire without waiting for others. If anybody is ahead, it
	// leaves the line and returns an error that matches ErrContended. It still has
	// to talk to the server, and waits for that as long as ctx allows.
	TryAcquire(ctx context.Context) (Hold, error)

	// Contenders returns who stands in line, in order. The first one holds the lock,
	// or is about to learn that it does. The answer may be outdated on arrival. An
	// empty line is not an error. It costs one read for the line and one for each
	// contender.
	Contenders(ctx context.Context) ([]Contender, error)
}

// LockConfig says how to stand in line. The zero value is good.
type LockConfig struct {
	// Strategy is how to wait; "" is DefaultStrategy.
	Strategy Strategy

	// Dialect says who stands in the same line; "" is DefaultDialect. The default and
	// Curator share their line with Curator's InterProcessMutex and LeaderSelector and
	// with go-zookeeper's Lock. With Curator, no guards-lock- znode is made, which
	// LeaderSelector would take for a participant. Kazoo shares it with kazoo's Lock,
	// WriteLock and Election.
	Dialect Dialect

	// Data are stored in the contender's znode, for Contenders and for people who
	// look at the znodes: who am I, and why do I want this?
	Data []byte

	// Joined, if not nil, is called when the contender's place in the line is known.
	// Where it has to wait, that is when its watch is set. It is called at most once
	// for each Acquire or TryAcquire, before that returns, and always before a
	// grant. Acquire waits for Joined to return: hand long work to another goroutine.
	Joined func(Place)
}
