package recipes

import "context"

// Slots is a Semaphore whose permits have numbers, from 0 to n-1. At most one contender of
// a path has a number at a time. Use it for workers that keep state by their number, for
// the worker part of unique ids (Snowflake's), or for n shards that n workers share. Like
// a Semaphore it holds no state, and any number of goroutines may use it. Each Acquire is
// another contender.
//
// All that Semaphore says of n holds here: contenders agree on it, and another number is
// ErrMismatch. A Semaphore at the same path shares the permits; its holds have no number.
//
// Source: none. Curator's InterProcessSemaphoreV2 and etcd have no numbers. It is the line
// of a Semaphore with the claim of a PriorityLock behind it. A contender that has its permit
// replaces its znode, in one transaction, by one that has the lowest free number in its
// name. The transaction also writes the path's znode, unchanged. The server refuses it if
// there was another claim since the contender listed the path. So no two znodes ever have
// the same number.
//
// The permit and its number are one znode. A client that deletes it frees both, so there
// is a number for every permit. The znode is named
// _c_<guid>-slot-<number>-lease-<sequence>, and has the place in line of the znode that it
// replaces.
//
// A claim wakes at most n waiters, as a departure does. They read the line again and wait.
// Contenders need the permission to write to the path. They wait by Predecessor where
// Handoff is asked for: a claim is no release.
//
// # What it does not promise
//
// A contender does not keep its number from one hold to the next. It gets the lowest free
// one, which another client may have had a moment ago, with whatever that client has left.
//
// A number excludes others as long as a Hold does: see "What a lock here is worth". An id
// generator that goes on after the loss of its session makes the ids of the next holder.
//
// # What a token is worth
//
// The token is the czxid of the znode that the claim has made. It grows with each hold of
// a number, so a store that keeps the largest token of each number can refuse older ones.
// Tokens of different numbers cannot be compared.
type Slots interface {
	// Path is the path the slots were made with.
	Path() string

	// Acquire joins the line, waits for a permit, and takes the lowest number that no
	// other contender has, on the terms of Semaphore.Acquire. Place.Znode is the znode of
	// the contender that waits; Hold.Znode will be that with the number.
	Acquire(ctx context.Context) (SlotHold, error)

	// TryAcquire is Acquire without waiting for others, on the terms of
	// Lock.TryAcquire.
	TryAcquire(ctx context.Context) (SlotHold, error)

	// Contenders is Semaphore.Contenders. The names of the first n tell their numbers. The
	// token of a contender that waits is not the one that it will have: the claim makes
	// another znode.
	Contenders(ctx context.Context) ([]Contender, error)
}

// SlotHold is a granted permit of Slots.
type SlotHold interface {
	Hold

	// Slot is the number of the permit, from 0 to n-1. It never changes. A guarded write
	// (Grant.Write) is refused once the number may be another's.
	Slot() int
}
