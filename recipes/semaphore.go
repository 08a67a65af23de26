package recipes

import (
	"context"
	"fmt"
	"math"
)

// Semaphore grants a path to at most n contenders at a time, in any process. Waiters are
// served first in, first out. A Semaphore is only a path and a configuration, without state of
// its own, and is safe for concurrent use. Each Acquire is another contender and takes another
// permit.
//
// All contenders must use the same n. The first one writes it into the data of the path's
// znode, as "permits=3". While the path has a child, a contender with another number is
// refused with ErrMismatch. When it has none, the contender deletes the path, which the server
// refuses if there are children, and writes its own number. The path is created as a
// container: the server deletes it some time after the last contender has left.
//
// Source: no text of its own; the wait queue of ZooKeeper Recipes, "Locks", with the first n
// contenders granted. Contenders are ephemeral sequential children of the path, named
// _c_<guid>-lease-<sequence>; "lease" is Curator's word. By Handoff, which supports one permit,
// they are named lease-<sequence>.
//
// To watch one znode, as in the text, is not enough. The first waiter is granted when any of
// the n contenders ahead leaves, so a waiter watches the nearest n znodes ahead. While all of
// them exist, n contenders are ahead and the waiter cannot be granted, so no wake-up is missed.
// A departure wakes at most n waiters: one if the first contender leaves, i if the i-th does.
// To watch fewer, each grant would have to notify the next waiter, which is a write per grant. If
// each waiter watched all contenders, as in Curator, each departure would wake all of them.
//
// There are no weights. If a contender could take several permits at once, all contenders
// behind it would have to read more than its name, so each listing would read every contender.
// Acquire several times, in an order that all contenders share, or under a Lock.
//
// # What a token is worth
//
// Up to n tokens are valid at a time, so a store must not refuse a token because it has seen a
// larger one. A token only identifies the writer. Use Write to protect data.
type Semaphore interface {
	// Path is the path of the semaphore.
	Path() string

	// SessionID is the id of the session that acquires it.
	SessionID() int64

	// Acquire joins the wait queue and waits until fewer than n contenders are ahead, as
	// Lock.Acquire does. It fails with ErrMismatch if other contenders use another n.
	Acquire(ctx context.Context) (Hold, error)

	// TryAcquire is Acquire without waiting for others, as Lock.TryAcquire.
	TryAcquire(ctx context.Context) (Hold, error)

	// Contenders returns the contenders, in order, as Lock.Contenders does. The first n hold
	// a permit, although some may not have noticed yet; n is the number stored at the path.
	// It costs one more read.
	Contenders(ctx context.Context) ([]Contender, error)
}

// SemaphoreConfig configures a Semaphore. Permits is required.
type SemaphoreConfig struct {
	// Permits is n, at least 1. A waiter watches n znodes: it reads all of them once, and
	// again those that change. So use semaphores for tens of permits, not for thousands.
	Permits int

	// Strategy is how to wait; "" is Handoff. With Herd all waiters watch the first
	// n contenders.
	Strategy Strategy

	// Dialect selects the libraries that share the permits; "" is ZooKeeper. Curator
	// shares them with Curator's InterProcessSemaphoreV2, and Kazoo with kazoo's Semaphore.
	// In both, contenders wait for a lock. The holder of the lock waits for a permit and
	// then releases the lock. TryAcquire also fails while another contender has the lock. A
	// Place has no position. Curator's contenders do not compare the number of permits. With
	// Kazoo it is in the data of the path, and another number is ErrMismatch.
	//
	// kazoo's contender does not count again after it has taken its permit. So if it lost
	// the lock with its session before that, the number can be exceeded.
	Dialect Dialect

	// Data is stored in the contender's znode, as in LockConfig.
	Data []byte

	// Joined is called as LockConfig.Joined is. Position counts all contenders ahead,
	// holders included.
	Joined func(Place)
}

// Validate reports, as an ErrInvalid, which field cannot be used.
func (c SemaphoreConfig) Validate() error {
	if c.Permits < 1 || c.Permits > math.MaxInt32 {
		return fmt.Errorf("%w: Permits is %d; from 1 to 2^31-1", ErrInvalid, c.Permits)
	}
	return nil
}

// Slots is a Semaphore with numbered permits, from 0 to n-1. At most one contender of a path
// holds a number at a time. Use it for workers that keep state by their number, for the worker
// part of unique ids (Snowflake's), or for n shards that n workers share. It is only a path and
// a configuration, without state of its own, and is safe for concurrent use. Each Acquire is
// another contender.
//
// All contenders must use the same n, as for a Semaphore; another number is ErrMismatch. A
// Semaphore at the same path shares the permits; its holds have no number.
//
// Source: none. Curator's InterProcessSemaphoreV2 and etcd have no numbers. It is the wait
// queue of a Semaphore, followed by a claim. A contender that is next writes the lowest free number
// to its znode. The same transaction also writes the path's znode, unchanged. The server refuses it
// if there was another claim since the contender read the numbers. So two znodes never have the
// same number.
//
// The permit and its number are one znode, named _c_<guid>-lease-<sequence>, with the data
// "zkrecipes: slot=<number>", a line feed, and SemaphoreConfig.Data. A client that deletes it frees
// both, so there is a number for every permit. A client that writes to it frees the number. Either
// ends the hold with ErrRemoved.
//
// A claim wakes the waiters that a release would wake. They read again and wait. Of several
// claims at the same time one succeeds, and the others are repeated: n contenders that start at
// once on n free numbers make about n*n/6 transactions. Each reads the znodes of the holders. Each
// Acquire needs permission to write to the path and to its own znode. With Handoff contenders wait by
// Predecessor, because a claim is not a release.
//
// # What it does not guarantee
//
// A contender does not keep its number from one hold to the next. It gets the lowest free
// number, which another client may have held just before, and finds the state that this
// client left behind.
//
// A number excludes others for as long as a Hold does: see "What a lock is worth". If an id
// generator continues after the loss of its session, it creates the same ids as the next holder.
//
// # What a token is worth
//
// The token is the zxid of the claim, the mzxid of the znode. It grows with each hold of a
// number, so a store can keep the largest token of each number and refuse smaller ones. Tokens
// of different numbers cannot be compared.
type Slots interface {
	// Path is the path of the slots.
	Path() string

	// Acquire joins the wait queue, waits for a permit, and claims the lowest free number.
	// Its errors are those of Semaphore.Acquire.
	Acquire(ctx context.Context) (SlotHold, error)

	// TryAcquire is Acquire without waiting for others, as Lock.TryAcquire.
	TryAcquire(ctx context.Context) (SlotHold, error)

	// Contenders is Semaphore.Contenders. Contender.Slot is the number of a holder. The token of a
	// waiter is not its token as a holder.
	Contenders(ctx context.Context) ([]Contender, error)
}

// SlotHold is a granted permit of Slots.
type SlotHold interface {
	Hold

	// Slot is the number of the permit, from 0 to n-1. It never changes. ZooKeeper refuses a
	// guarded write (Grant.Write) once another contender may hold the number.
	Slot() int
}
