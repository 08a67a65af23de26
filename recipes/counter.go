package recipes

import (
	"context"
	"fmt"
)

// Counter is a number that many clients change. Each change counts once. It is only a path,
// without state of its own, and is safe for concurrent use.
//
// Source: none of the recipe texts; users of other libraries expect it. It is a
// compare-and-set loop on one znode, whose data is the number in decimal
// (CounterConfig.Dialect). If n clients change it at once, one of n attempts succeeds. So it
// is for numbers that change a few times a second, not thousands of times.
type Counter interface {
	// Path is the path of the counter's znode.
	Path() string

	// Get returns the number, or 0 if the znode does not exist. It costs one read, and the
	// session's server may lag behind others. If the data is not a 64-bit number, the error
	// matches ErrInvalid. If it is in the format of another dialect, it matches ErrForeign.
	Get(ctx context.Context) (int64, error)

	// Add adds delta, which may be negative, and returns the sum. If the znode does not
	// exist, Add creates it as a persistent znode. If the sum does not fit into 64 bits, the
	// error matches ErrOverflow, and nothing is changed.
	//
	// Add counts once even if replies are lost: each change is a transaction with a receipt,
	// an ephemeral child of the counter's znode that the session keeps. If ctx ends, or the
	// session is lost, after the change was sent, the error matches ErrUnknownOutcome: it
	// was counted once, or not at all.
	//
	// Each attempt costs one read and one write. It fails only if another client's change
	// came between the two. Then Add waits for a random time of up to 2 ms. The bound
	// doubles with each failure, up to 256 ms.
	Add(ctx context.Context, delta int64) (int64, error)
}

// CounterConfig configures a Counter. The zero value is the default.
type CounterConfig struct {
	// Dialect is the format of the number; "" is ZooKeeper. The default and Kazoo
	// store it in decimal, as kazoo's Counter of an int does. Curator stores it in 8 bytes,
	// as Curator's DistributedAtomicLong does. Those libraries also compare the znode's
	// version, so no change is lost. If they lose a reply, they may count a change twice or
	// not at all.
	//
	// kazoo's Counter with support_curator (32 bits), or with a default that is not an int,
	// is not compatible.
	Dialect Dialect
}

// Latch is a count-down latch: it opens when it was counted down a number of times, and then
// stays open. It is only a path and a number, without state of its own, and is safe for
// concurrent use.
//
// Source: none of the recipe texts. The child remaining of the path holds the remaining
// count in decimal. The transaction that sets it to 0 creates the child open, which all
// waiters watch, as the members of a double barrier watch ready. So each waiter wakes once,
// and not at every count.
//
// Both children are persistent. The library does not delete a latch that has opened: an
// operator does, or a program that knows that no client waits.
type Latch interface {
	// Path is the path of the latch.
	Path() string

	// Count returns the remaining count: 0 if the latch is open.
	Count(ctx context.Context) (int64, error)

	// CountDown counts down by one and returns the remaining count. It counts once even if
	// replies are lost, as Counter.Add does. On an open latch it changes nothing and
	// returns 0.
	CountDown(ctx context.Context) (int64, error)

	// Wait returns when the latch is open. It fails as Barrier.Wait does.
	Wait(ctx context.Context) error
}

// LatchConfig configures a Latch.
type LatchConfig struct {
	// Count is the initial count, at least 1. The first CountDown writes it. All clients
	// must use the same number; the library does not compare it.
	Count int64
}

// Validate reports what is wrong with the configuration, as an ErrInvalid.
func (c LatchConfig) Validate() error {
	if c.Count < 1 {
		return fmt.Errorf("%w: Count is %d; a latch is counted down at least once", ErrInvalid, c.Count)
	}
	return nil
}
