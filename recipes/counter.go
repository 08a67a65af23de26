package recipes

import (
	"context"
	"fmt"
)

// Counter is a number that many change. Each change is counted once. A Counter is a
// name and holds no state. Any number of goroutines may use it.
//
// Source: none of the recipe texts; users of other libraries expect it. It is a
// compare-and-set loop on one znode, whose data is the number in decimal
// (CounterConfig.Dialect). Where n
// change it at once, one of n succeeds at a time. So it is for numbers that change
// some times a second, not some thousand times.
type Counter interface {
	// Path is the path of the counter's znode.
	Path() string

	// Get returns the number, or 0 if the znode does not exist. It costs one read.
	// The answer is what one server knows; another may know more. If the data are
	// not a number of 64 bits, the error matches ErrInvalid. If they are in the form of
	// another dialect it matches ErrForeign.
	Get(ctx context.Context) (int64, error)

	// Add adds delta, which may be negative, and returns the sum. If the znode does
	// not exist, Add makes it, persistent. If the sum does not fit into 64 bits, the
	// error matches ErrOverflow, and nothing is changed.
	//
	// Add counts once, also when replies are lost. Each change is one transaction
	// with a receipt: an ephemeral child of the counter's znode that the session
	// keeps. If ctx ends, or the session is lost, after the change was sent, the
	// error matches ErrUnknownOutcome: it was counted once, or not at all.
	//
	// Each attempt costs one read and one write. An attempt fails only if another
	// client's change came between the two. Before the next one Add waits for a
	// random time of up to 2 ms. The bound doubles with each failure, up to 256 ms.
	Add(ctx context.Context, delta int64) (int64, error)
}

// CounterConfig says how to use a counter. The zero value is good.
type CounterConfig struct {
	// Dialect says who counts at the same path; "" is DefaultDialect. The default and
	// Kazoo have the number in decimal, as kazoo's Counter with a whole number has it.
	// Curator has it as Curator's DistributedAtomicLong, in 8 bytes. Those libraries
	// count by the znode's version too, so no change of any of them is lost. They may
	// count a change twice, or not at all, when they lose its answer.
	//
	// Not shared are kazoo's Counter with support_curator, whose numbers are of 32 bits,
	// and one with a default that is not an int.
	Dialect Dialect
}

// Latch is a count-down latch: it is closed until it has been counted down a
// number of times, and then stays open. It is a name and a number and holds no
// state. Any number of goroutines may use it.
//
// Source: none of the recipe texts. The child remaining of the path holds, in
// decimal, how often the latch still has to be counted down. The transaction that
// brings it to 0 creates the child open, for which all wait, as members of a double
// barrier wait for ready. So a waiter is woken once, and not at every count.
//
// Both children are persistent. Nothing removes a latch that has served: an
// operator does, or a program that knows that nobody waits any more.
type Latch interface {
	// Path is the path the latch was made with.
	Path() string

	// Count returns how often the latch still has to be counted down: 0 when it is
	// open.
	Count(ctx context.Context) (int64, error)

	// CountDown counts down by one and returns what remains. It counts once, also
	// when replies are lost, on the terms of Counter.Add. Counting down an open
	// latch changes nothing and returns 0.
	CountDown(ctx context.Context) (int64, error)

	// Wait returns when the latch is open, on the terms of Barrier.Wait.
	Wait(ctx context.Context) error
}

// LatchConfig says how often a latch has to be counted down.
type LatchConfig struct {
	// Count is the number to begin with, at least 1. The first CountDown writes it.
	// All must use the same number; it is not compared.
	Count int64
}

// Validate reports what is wrong with the configuration, as an ErrInvalid.
func (c LatchConfig) Validate() error {
	if c.Count < 1 {
		return fmt.Errorf("%w: Count is %d; a latch is counted down at least once", ErrInvalid, c.Count)
	}
	return nil
}
