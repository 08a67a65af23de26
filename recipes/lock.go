package recipes

import "context"

// Lock is a mutual exclusion lock: of all contenders for one path, in any
// process, at most one is granted at a time, in the order in which they joined.
// A Lock is a name and a way of waiting; it holds no state, may be used by any
// number of goroutines, and each Acquire is a contender of its own. It is not
// re-entrant: a goroutine that acquires twice waits for itself.
//
// There is no re-entrant form. Go has no identity of a goroutine that a lock
// could count by, and a count kept by the session, as other libraries keep it by
// thread, would let in every goroutine of the process that uses it. An explicit
// owner's token would be honest, and exists: it is the Hold. Code that may run
// with the lock held or without takes a Hold as an argument (or in its context)
// and acquires one only if it is given none; whoever has acquired releases. A
// counter around that would hide who that is, and what is left to do when the
// hold is lost at depth two.
//
// A hold cannot be handed to a contender of choice: whoever is first in line
// when it looks takes itself for granted, so naming another could not hold it
// back. PriorityLock, which is granted by a transaction, has PriorityHold.HandOff.
//
// Source: ZooKeeper Recipes, "Locks", with "Recoverable Errors and the GUID".
// Contenders are ephemeral sequential children of the path named
// _c_<guid>-lock-<sequence>, as Curator's InterProcessMutex and
// go-zookeeper's Lock name theirs, or, by Handoff, lock-<sequence>, so that those
// can stand in the same line (but not across the wrap of the sequence, which they
// do not survive). Children of other names are ignored; one that holds with
// Handoff and writes makes guards-lock-9999999999, a place for what guards its
// writes.
type Lock interface {
	// Path is the path the lock was made with.
	Path() string

	// Acquire joins the line and waits for its turn. Most callers want this.
	//
	// If ctx ends first it returns ctx's error and the contender leaves the
	// line (see the package comment for a connection that is down). If the
	// session is lost it returns an error that matches ErrSessionLost. If
	// somebody deletes the waiting contender's znode the error matches
	// ErrRemoved; a waiter learns of that when it next looks, at the latest
	// when its turn would have come. A lost connection is not an error: the contender keeps its
	// place and looks again when it is back. In every case of an error nothing
	// is held.
	Acquire(ctx context.Context) (Hold, error)

	// TryAcquire is Acquire without waiting for others: if anybody is ahead it
	// leaves the line and returns an error that matches ErrContended. It still
	// has to talk to the server, and waits for that as long as ctx allows.
	TryAcquire(ctx context.Context) (Hold, error)

	// Contenders returns who stands in line, in order; the first one holds the
	// lock, or is about to learn that it does. It is a picture that may be
	// outdated on arrival. An empty line is no error. It costs one read for
	// the line and one for each contender.
	Contenders(ctx context.Context) ([]Contender, error)
}

// LockConfig says how to stand in line. The zero value is good.
type LockConfig struct {
	// Strategy is how to wait; "" is DefaultStrategy.
	Strategy Strategy

	// Data is stored in the contender's znode, for Contenders and for people
	// who look at the znodes: who am I, and why do I want this.
	Data []byte

	// Joined, if not nil, is called at most once for each Acquire or TryAcquire,
	// before it returns, when its place in the line is known; where it has to
	// wait, when it has begun to (its watch is set). It is always called before
	// a grant. Acquire waits for it to return: hand long work to another
	// goroutine.
	Joined func(Place)
}
