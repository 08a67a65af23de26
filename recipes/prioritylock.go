package recipes

import (
	"context"
	"fmt"
	"time"
)

// PriorityLock is a revocable read-write lock whose contenders carry a priority:
// one of higher priority is granted before those of lower priority that wait,
// whenever it came, and may ask those who hold to give way. Like a Lock it is a
// name and a way of waiting, holds no state, may be used by any number of
// goroutines, is not re-entrant, and each Acquire is a contender of its own.
//
// Source: none. ZooKeeper Recipes names "revocable read-write priority locks" as
// a function that "can be imagined". This is what it is here:
//
//   - A priority is a number from 0 to 99; the lower goes first, as in the text's
//     priority queue.
//   - The order is: who holds; the heir, if a holder has named one (HandOff);
//     who waits, by priority, and by sequence number within a priority. A reader
//     waits for the writers ahead of it in this order, a writer for everybody
//     ahead of it.
//   - A grant is never taken away by a higher priority. Whoever holds is ahead of
//     everybody. It can be asked to give way (Revoke, PriorityLockConfig.Ask),
//     and forced to if it has allowed that (RevokeForced).
//   - Who is granted is decided by who waited when the contender last looked. A
//     contender of higher priority that joins after that look and before the
//     grant waits.
//   - Lower priorities starve as long as higher ones keep coming. Within one
//     priority nobody starves: later contenders of the same priority, readers
//     too, go behind.
//
// # Why two can never be granted
//
// In the plain line the smallest number is granted, and nobody can come before
// it: a listing is proof enough. Here somebody can, so a place in line proves
// nothing, and being granted takes a step of its own, the claim: one transaction
// that replaces the contender's waiting znode by a holding one. Holding znodes
// come into being by claims only. ZooKeeper carries a claim out only if no writer
// has claimed since the contender looked: a writer's claim writes the path's
// znode, and every claim checks that it has the version that was read before the
// line was listed. So:
//
//   - Of two writers, or a writer and a reader that claims later, the later has
//     listed the line after the earlier one's claim, or is refused; it has seen
//     the writer hold, and so does not claim before that one has gone.
//   - A reader may claim between a writer's look and the writer's claim. So a
//     writer that has claimed lists the line once more, and waits until it holds
//     alone; no reader can claim any more, as above.
//
// This does not depend on priorities at all; they decide only who tries.
//
// # Znodes
//
// Waiting contenders are ephemeral children of the path named
// _c_<guid>-read-<YY>-<sequence> and _c_<guid>-write-<YY>-<sequence>, YY being
// the priority. Holders are named -reading- and -writing- instead, with the same
// guid, priority and number, so that an operator sees who holds. Contenders of a
// SharedLock at the same path do not meet them. The data of the path's znode
// names the heir; a path whose data says anything else is refused
// (ErrMismatch).
//
// # What a token is worth
//
// The token is the czxid of the holding znode, which the claim creates: it grows
// with every grant, whatever the order of joining was. What SharedLock says of
// readers' tokens holds.
type PriorityLock interface {
	// Path is the path the lock was made with.
	Path() string

	// AcquireRead and AcquireWrite join and wait for their turn, on the terms
	// of Lock.Acquire. Place.Znode is the waiting znode; Hold.Znode will be the
	// holding one.
	AcquireRead(ctx context.Context) (PriorityHold, error)
	AcquireWrite(ctx context.Context) (PriorityHold, error)

	// TryRead and TryWrite do not wait for others, on the terms of
	// Lock.TryAcquire. They ask nobody to give way.
	TryRead(ctx context.Context) (PriorityHold, error)
	TryWrite(ctx context.Context) (PriorityHold, error)

	// Contenders returns who holds and who waits, in the order above, on the
	// terms of Lock.Contenders.
	Contenders(ctx context.Context) ([]Contender, error)

	// Revoke asks a contender to give way, on the terms of SharedLock.Revoke.
	// One that waits, or begins to hold meanwhile, takes the request along.
	Revoke(ctx context.Context, znode string) error

	// RevokeForced asks a contender to give way and takes its place away when
	// its grace is over, on the terms of SharedLock.RevokeForced. If it begins
	// to hold meanwhile, its grace begins again.
	RevokeForced(ctx context.Context, znode string) error
}

// PriorityHold is a granted PriorityLock.
//
// It cannot be downgraded: the claim that would make it a reader would change
// its znode and its token, which everybody who has been told of them relies on.
type PriorityHold interface {
	Hold

	// Mode is what was acquired.
	Mode() Mode

	// Revoked is SharedHold.Revoked. Contenders of higher priority that were
	// made with Ask close it too.
	Revoked() <-chan struct{}

	// HandOff releases the lock to a waiting contender, the heir, named by the
	// path of its znode: from then on it is ahead of all others who wait,
	// whatever their priority, so nobody who conflicts with it is granted before
	// it, until it is granted itself or has left. If it leaves, or its session
	// ends, first, the line goes on as if it had not been named.
	//
	// It returns nil when the lock is released and the heir named, in one
	// transaction; Done is closed and Err is ErrReleased, which a Release that
	// follows returns too. Stop acting before you call it. Nothing has happened, and the hold stands, if the error matches
	// ErrNoNode (the heir does not wait), ErrContended (another holder has named
	// an heir, who waits) or ErrInvalid. If it matches ErrUnknownOutcome, it may
	// have happened: call Release, which is harmless then. If the hold no longer
	// stands the error matches ErrNotHeld.
	//
	// Lock, SharedLock and Election have no such thing: whoever is first in
	// their line takes itself for granted when it looks, without asking anybody,
	// so naming another one could not hold it back.
	HandOff(ctx context.Context, heir string) error
}

// LowestPriority is the largest number that a priority can have.
const LowestPriority = 99

// PriorityLockConfig says how to contend. The zero value is the highest
// priority.
type PriorityLockConfig struct {
	// Priority is from 0, the highest, to LowestPriority.
	Priority int

	// Ask has a contender that waits ask those who hold at a lower priority,
	// and are in its way, to give way, as Revoke does; those who are not
	// Revocable are left alone. It costs a read and a write for each.
	Ask bool

	// Strategy is how to wait; "" is DefaultStrategy.
	Strategy Strategy

	// Data, Joined, Revocable and Grace are those of SharedLockConfig.
	Data      []byte
	Joined    func(Place)
	Revocable bool
	Grace     time.Duration
}

// Validate reports, as an ErrInvalid, which field cannot be used.
func (c PriorityLockConfig) Validate() error {
	if c.Priority < 0 || c.Priority > LowestPriority {
		return fmt.Errorf("%w: Priority is %d; it must be between 0, the highest, and %d", ErrInvalid, c.Priority, LowestPriority)
	}
	return validateGrace(c.Revocable, c.Grace)
}
