package recipes

import (
	"context"
	"fmt"
	"math"
)

// Semaphore grants at most n contenders of one path, in any process, at a time, in
// the order in which they joined. Like a Lock it is a name and a way of
// waiting, and holds no state. Any number of goroutines may use it. Each Acquire is
// another contender: one that holds a permit and acquires again takes a second one.
//
// All contenders must agree on n. The first one to join writes it into the data of
// the path's znode, as "permits=3". A contender with another number is refused with
// ErrMismatch while any child of the path is left. When none is, it deletes the path,
// which the server only does without children, and writes its own number. The path is made
// as a container: the server removes it some time after the last contender has left.
//
// Source: no text of its own; the line of ZooKeeper Recipes, "Locks", with the
// first n in line granted. Contenders are ephemeral sequential children of the
// path, named _c_<guid>-lease-<sequence>; "lease" is Curator's word. By Handoff,
// which takes one permit, they are named lease-<sequence>.
//
// The text's way of waiting for one node is not enough. The first waiter may enter
// when any of the n ahead leaves, so a waiter watches n znodes, the nearest n ahead.
// With all of them n are ahead, so one of them must have left before the waiter may
// enter, and no wake-up is missed. A departure wakes at most n waiters, however many
// wait: one when the first in line leaves, i when the i-th does. To watch fewer, each
// granted contender would have to tell the next, a write for each grant. To watch
// the whole line, as Curator does, is the herd.
//
// There are no weights. A contender that takes several permits at once would have to
// be known as such to all who are behind it, by more than its name. That would cost
// a read of every contender in each look. Acquire several times, in an order that
// all contenders share, or use a Lock around that.
//
// # What a token is worth
//
// Up to n tokens are valid at a time, so a store must not refuse one because it has
// seen a larger one. A token is unique and tells who wrote. Write is the protection.
type Semaphore interface {
	// Path is the path the semaphore was made with.
	Path() string

	// Acquire joins the line and waits until fewer than n are ahead, on the terms of
	// Lock.Acquire. It fails with ErrMismatch if the contenders have agreed on
	// another n.
	Acquire(ctx context.Context) (Hold, error)

	// TryAcquire is Acquire without waiting for others, on the terms of
	// Lock.TryAcquire.
	TryAcquire(ctx context.Context) (Hold, error)

	// Contenders returns who stands in line, in order, on the terms of
	// Lock.Contenders. The first n hold a permit, or are about to learn that they do;
	// n is what the contenders have agreed on. It costs one read more.
	Contenders(ctx context.Context) ([]Contender, error)
}

// SemaphoreConfig says how to stand in line. Permits is required.
type SemaphoreConfig struct {
	// Permits is n, at least 1. A waiter watches n znodes: it reads all of them once,
	// and those that change again. So use semaphores for tens, not for thousands.
	Permits int

	// Strategy is how to wait; "" is DefaultStrategy. With Herd everybody
	// watches the first n in line.
	Strategy Strategy

	// Dialect says who takes permits at the same path; "" is DefaultDialect. Curator
	// shares them with Curator's InterProcessSemaphoreV2, and Kazoo with kazoo's
	// Semaphore. There contenders stand in line for a lock. The holder of the lock waits
	// for a permit and then releases the lock. TryAcquire fails too while another has the
	// lock. A Place has no position. Nothing compares the numbers of permits in Curator's.
	// With Kazoo they are in the data of the path, and another number is ErrMismatch.
	//
	// kazoo's contender does not count again when it has taken its permit. So one that
	// has lost the lock meanwhile, with its session, can exceed the number.
	Dialect Dialect

	// Data are stored in the contender's znode, as in LockConfig.
	Data []byte

	// Joined is called on the terms of LockConfig.Joined. Position counts all that
	// are ahead, holders included.
	Joined func(Place)
}

// Validate reports, as an ErrInvalid, which field cannot be used.
func (c SemaphoreConfig) Validate() error {
	if c.Permits < 1 || c.Permits > math.MaxInt32 {
		return fmt.Errorf("%w: Permits is %d; from 1 to 2^31-1", ErrInvalid, c.Permits)
	}
	return nil
}
