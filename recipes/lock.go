package recipes

import "context"

// Lock is a mutual exclusion lock: at most one contender of a path holds it at a time, in any
// process. Waiters are served first in, first out. A Lock is only a path and a configuration,
// without state of its own, and is safe for concurrent use. Each Acquire is another
// contender. A Lock is not re-entrant: a goroutine that acquires it twice waits for itself.
//
// There is no re-entrant form, because Go has no goroutine identity to count by. A count per
// session would admit every goroutine that uses the session. The explicit owner is the Hold:
// code that runs with or without the lock takes a Hold as an argument or in its context. If
// it gets none, it acquires one and releases it. A counter would hide which code must
// release, and what to do when the hold is lost in a nested call.
//
// A holder cannot choose its successor, because a contender that is first in the wait queue
// is granted without asking. A PriorityLock grants by a transaction and has
// PriorityHold.HandOff.
//
// Source: ZooKeeper Recipes, "Locks", with "Recoverable Errors and the GUID".
// Contenders are ephemeral sequential children of the path, named
// _c_<guid>-lock-<sequence>, or by Handoff lock-<sequence>. Curator's InterProcessMutex and
// go-zookeeper's Lock use the first form and can share the wait queue, except when the
// sequence number overflows, which they do not handle. Children with other names are
// ignored. A holder by Handoff that writes creates the child guards-lock-9999999999, which
// contains the guards of its writes.
type Lock interface {
	// Path is the path of the lock.
	Path() string

	// SessionID is the id of the session that acquires it.
	SessionID() int64

	// Acquire joins the wait queue and waits until the lock is granted.
	//
	// If ctx ends first, Acquire returns ctx's error and the contender leaves the wait
	// queue (see the package comment for a connection that is down). If the session is
	// lost, the error matches ErrSessionLost. If another client deletes the contender's
	// znode, the error matches ErrRemoved; a waiter notices that at its next read, at the
	// latest when its turn would have come. After any error nothing is held.
	//
	// A lost connection is not an error: the contender keeps its place and reads again
	// after the reconnect.
	Acquire(ctx context.Context) (Hold, error)

	// TryAcquire is Acquire without waiting for other contenders. If one is ahead, it
	// leaves the wait queue and returns an error that matches ErrContended. It still waits
	// for the servers, as long as ctx allows.
	TryAcquire(ctx context.Context) (Hold, error)

	// Contenders returns the contenders, in order. The first one holds the lock, although it
	// may not have noticed yet. The answer may be outdated when it arrives. It can be empty.
	// It costs one listing, and one read for each contender.
	Contenders(ctx context.Context) ([]Contender, error)
}

// LockConfig configures a Lock. The zero value is the default.
type LockConfig struct {
	// Strategy is how to wait; "" is Handoff.
	Strategy Strategy

	// Dialect selects the libraries that share the wait queue; "" is ZooKeeper. The
	// default and Curator share it with Curator's InterProcessMutex and LeaderSelector and
	// with go-zookeeper's Lock. With Curator there is no guards-lock- znode, which
	// LeaderSelector would count as a participant. Kazoo shares it with kazoo's Lock,
	// WriteLock and Election.
	Dialect Dialect

	// Data is stored in the contender's znode. Contenders returns it. It tells people who
	// the contender is and why it wants the lock.
	Data []byte

	// Joined, if not nil, is called when the contender's place in the wait queue is known;
	// if the contender must wait, after its watch is set. It is called at most once for each
	// Acquire or TryAcquire, and always before a grant. Acquire waits until Joined returns:
	// start long work in another goroutine.
	Joined func(Place)
}
