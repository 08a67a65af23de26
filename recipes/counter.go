package recipes

import (
	"context"
	"fmt"
)

// Counter is a number that many change, each change counted once. It is a name
// itself, holds no state, and may be used by any number of goroutines.
//
// Source: none of the recipe texts; users of other libraries expect it. It is a
// compare-and-set loop on one znode, whose data is the number in decimal, so it
// is for numbers that change some times a second, not some thousand times: where
// n change it at once, one of n succeeds at a time.
type Counter interface {
	// Path is the path of the counter's znode.
	Path() string

	// Get returns the number; 0 if the znode does not exist. It costs one read,
	// and is what the server that answers knows. Data that are no number of 64
	// bits are ErrInvalid.
	Get(ctx context.Context) (int64, error)

	// Add adds delta, which may be negative, and returns the sum. The znode is made
	// where it does not exist, persistent. A sum beyond 64 bits is ErrOverflow, and
	// nothing is changed.
	//
	// It is counted once, though replies are lost: each change is one transaction
	// with a receipt, an ephemeral child of the counter's znode that the session
	// keeps. If ctx ends, or the session is lost, after it was sent, the error
	// matches ErrUnknownOutcome: it was counted once, or not at all.
	//
	// It costs one read and one write for each attempt. An attempt fails only if
	// another's change came between the two; before the next one it waits for a
	// random time of up to 2 ms, which doubles with each failure, up to 256 ms.
	Add(ctx context.Context, delta int64) (int64, error)
}

// CounterConfig says how to use a counter. The zero value is good, and there is
// nothing to choose yet.
type CounterConfig struct{}

// Latch is a count-down latch: it is closed until it has been counted down a
// number of times, and then stays open for good. It is a name and a number, holds
// no state, and may be used by any number of goroutines.
//
// Source: none of the recipe texts. The child remaining of the path holds how
// often it still has to be counted down, in decimal; the transaction that brings
// it to 0 creates the child open, for which all wait, as the members of a double
// barrier wait for ready. So who waits is woken once, and not at every count.
//
// Both are persistent. A latch that has served is removed by hand, or by whoever
// knows that nobody waits any more.
type Latch interface {
	// Path is the path the latch was made with.
	Path() string

	// Count returns how often it still has to be counted down, 0 when it is open.
	Count(ctx context.Context) (int64, error)

	// CountDown counts down by one, once though replies are lost, on the terms of
	// Counter.Add, and returns what remains. Counting down an open latch changes
	// nothing, and returns 0.
	CountDown(ctx context.Context) (int64, error)

	// Wait returns when the latch is open, on the terms of Barrier.Wait.
	Wait(ctx context.Context) error
}

// LatchConfig says how often a latch has to be counted down.
type LatchConfig struct {
	// Count is the number to begin with, at least 1. The first to count down
	// writes it; all have to use the same. It is not compared.
	Count int64
}

// Validate reports what is wrong with the configuration, as an ErrInvalid.
func (c LatchConfig) Validate() error {
	if c.Count < 1 {
		return fmt.Errorf("%w: Count is %d; a latch is counted down at least once", ErrInvalid, c.Count)
	}
	return nil
}
