package recipes

import (
	"context"
	"fmt"
	"time"
)

// PriorityLock is a revocable read-write lock whose contenders have a priority. A
// contender of higher priority is granted before those of lower priority that wait,
// whenever it came, and may ask the holders to give way. Like a Lock it is a name
// and a way of waiting, and holds no state. Any number of goroutines may use it. It
// is not re-entrant, and each Acquire is another contender.
//
// Source: none. ZooKeeper Recipes names "revocable read-write priority locks" as
// a function that "can be imagined". This is what it is here:
//
//   - A priority is a number from 0 to 99. The lower number goes first, as in the
//     text's priority queue.
//   - The order is: the holders; the successor, if a holder has named one (HandOff);
//     the waiters, by priority, and within a priority by sequence number. A reader
//     waits for the writers ahead of it in this order, a writer for everybody ahead
//     of it.
//   - A higher priority never takes a grant away. A holder is ahead of everybody. It
//     can be asked to give way (Revoke, PriorityLockConfig.Ask), and forced to if it
//     has allowed that (RevokeForced).
//   - The last look of a contender before its grant decides. A contender of higher
//     priority that joins after that look and before the grant waits.
//   - Lower priorities starve as long as higher ones keep coming. Within one
//     priority nobody starves: later contenders of the same priority, readers
//     too, go behind.
//
// # Why two can never be granted
//
// In the plain line the smallest number is granted, and nobody can come before it:
// a listing is proof enough. Here somebody can come before, so a place in line
// proves nothing. Being granted takes another step, the claim: one transaction that
// replaces the contender's waiting znode by a holding one. Only claims make holding
// znodes.
//
// ZooKeeper carries a claim out only if no writer has claimed since the contender
// looked. A writer's claim writes the path's znode. Every claim checks that this
// znode has the version that was read before the line was listed. So:
//
//   - Take two writers, or a writer and a reader that claims later. The later one
//     has listed the line after the earlier claim, or is refused. It has seen the
//     writer hold, and so does not claim before that writer has gone.
//   - A reader may claim between a writer's look and the writer's claim. So a
//     writer that has claimed lists the line once more, and waits until it holds
//     alone. No reader can claim any more, as above.
//
// This does not depend on priorities at all; they decide only who tries.
//
// # Znodes
//
// Waiting contenders are ephemeral children of the path, named
// _c_<guid>-read-<YY>-<sequence> and _c_<guid>-write-<YY>-<sequence>. YY is the
// priority. Holders are named -reading- and -writing- instead, with the same guid,
// priority and number, so that an operator sees who holds. Contenders of a
// SharedLock at the same path do not meet them. The data of the path's znode name
// the successor. A path whose data say anything else is refused (ErrMismatch).
//
// # What a token is worth
//
// The token is the czxid of the holding znode, which the claim creates. It grows
// with every grant, whatever the order of joining was. What SharedLock says of
// readers' tokens holds here too.
type PriorityLock interface {
	// Path is the path the lock was made with.
	Path() string

	// AcquireRead and AcquireWrite join and wait for their turn, on the terms of
	// Lock.Acquire. Place.Znode is the waiting znode; Hold.Znode will be the holding
	// one.
	AcquireRead(ctx context.Context) (PriorityHold, error)
	AcquireWrite(ctx context.Context) (PriorityHold, error)

	// TryRead and TryWrite do not wait for others, on the terms of
	// Lock.TryAcquire. They ask nobody to give way.
	TryRead(ctx context.Context) (PriorityHold, error)
	TryWrite(ctx context.Context) (PriorityHold, error)

	// Contenders returns who holds and who waits, in the order above, on the
	// terms of Lock.Contenders.
	Contenders(ctx context.Context) ([]Contender, error)

	// Revoke asks a contender to give way, on the terms of SharedLock.Revoke. The
	// request stays with a contender that still waits when it is granted.
	Revoke(ctx context.Context, znode string) error

	// RevokeForced asks a contender to give way, and deletes its znode when its grace
	// is over, on the terms of SharedLock.RevokeForced. If the contender is granted
	// in the meantime, its grace begins again.
	RevokeForced(ctx context.Context, znode string) error
}

// PriorityHold is a granted PriorityLock.
//
// It cannot be downgraded. The claim that would make it a reader would change its
// znode and its token, on which everybody relies who has been told of them.
type PriorityHold interface {
	Hold

	// Mode is what was acquired.
	Mode() Mode

	// Revoked is SharedHold.Revoked. Contenders of higher priority that were made
	// with Ask close it too.
	Revoked() <-chan struct{}

	// HandOff releases the lock to a waiting contender, its successor, named by the
	// path of its znode. From then on the successor is ahead of all other waiters,
	// whatever their priority. So no contender that conflicts with it is granted
	// before it has been granted, or has left. If it leaves first, or its session
	// ends, the line goes on as if it had not been named.
	//
	// Stop acting before you call HandOff. It returns nil when the lock is released
	// and the successor named, in one transaction. Done is then closed, and Err is
	// ErrReleased, which a Release that follows returns too.
	//
	// Nothing has happened, and the hold stands, if the error matches ErrNoNode (the
	// successor does not wait), ErrContended (another holder has named a successor,
	// which waits) or ErrInvalid. If it matches ErrUnknownOutcome, it may have
	// happened: call Release, which is harmless then. If the hold no longer stands,
	// the error matches ErrNotHeld.
	//
	// Lock, SharedLock and Election have no such thing. A contender that finds itself
	// first in their line considers itself granted and asks nobody, so naming another
	// could not hold it back.
	HandOff(ctx context.Context, successor string) error
}

// LowestPriority is the largest number that a priority can have.
const LowestPriority = 99

// PriorityLockConfig says how to contend. The zero value is the highest
// priority.
type PriorityLockConfig struct {
	// Priority is from 0, the highest, to LowestPriority.
	Priority int

	// Ask makes a waiting contender ask holders of lower priority that are in its
	// way to give way, as Revoke does. Holders that are not Revocable are left
	// alone. It costs a read and a write for each.
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
