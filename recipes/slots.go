package recipes

import "context"

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
// queue of a Semaphore, followed by the claim of a PriorityLock. A contender that has its
// permit replaces its znode, in one transaction, by a znode with the lowest free number in its
// name. The transaction also writes the path's znode, unchanged. The server refuses it if there
// was another claim since the contender's listing. So two znodes never have the same number.
//
// The permit and its number are one znode. A client that deletes it frees both, so there is a
// number for every permit. The znode is named _c_<guid>-slot-<number>-lease-<sequence>, and
// keeps the position of the znode that it replaces.
//
// A claim wakes the waiters that a release would wake. They read again and wait. Of several
// claims at the same time one succeeds, and the others are repeated: n contenders that start at
// once on n free numbers make about n*n/6 transactions. Each Acquire needs permission to write
// to the path. With Handoff contenders wait by Predecessor, because a claim is not a release.
//
// ZooKeeper's sequence numbers come to an end after 2^31 contenders of a path. After that
// Acquire fails with ErrLimit: use another path.
//
// # What it does not guarantee
//
// A contender does not keep its number from one hold to the next. It gets the lowest free
// number, which another client may have held just before, with the state that it has left.
//
// A number excludes others for as long as a Hold does: see "What a lock is worth". If an id
// generator continues after the loss of its session, it creates the ids of the next holder.
//
// # What a token is worth
//
// The token is the czxid of the znode that the claim created. It grows with each hold of a
// number, so a store can keep the largest token of each number and refuse smaller ones. Tokens
// of different numbers cannot be compared.
type Slots interface {
	// Path is the path of the slots.
	Path() string

	// Acquire joins the wait queue, waits for a permit, and claims the lowest free number.
	// Its errors are those of Semaphore.Acquire. Place.Znode is the waiting znode, and
	// Hold.Znode the one with the number.
	Acquire(ctx context.Context) (SlotHold, error)

	// TryAcquire is Acquire without waiting for others, as Lock.TryAcquire.
	TryAcquire(ctx context.Context) (SlotHold, error)

	// Contenders is Semaphore.Contenders. The names of holders contain their numbers. The
	// token of a waiter is not its token as a holder, because the claim creates another
	// znode.
	Contenders(ctx context.Context) ([]Contender, error)
}

// SlotHold is a granted permit of Slots.
type SlotHold interface {
	Hold

	// Slot is the number of the permit, from 0 to n-1. It never changes. ZooKeeper refuses a
	// guarded write (Grant.Write) once another contender may hold the number.
	Slot() int
}
