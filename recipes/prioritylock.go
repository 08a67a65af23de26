package recipes

import (
	"context"
	"fmt"
	"time"
)

// PriorityLock is a revocable read-write lock whose contenders have a priority. A contender
// is granted before all waiters of lower priority, even if they joined earlier, and can ask
// the holders to release. A PriorityLock is only a path and a configuration, without state of
// its own, and is safe for concurrent use. It is not re-entrant, and each Acquire is another
// contender.
//
// Source: none. ZooKeeper Recipes names "revocable read-write priority locks" as a function
// that "can be imagined". This is its definition here:
//
//   - A priority is a number from 0 to 99. The lower number goes first, as in the text's
//     priority queue.
//   - The order is: the holders; the successor, if a holder has chosen one (HandOff); the
//     waiters, by priority and then by sequence number. A reader waits for the writers ahead
//     of it in this order, a writer for all contenders ahead of it.
//   - A higher priority never takes a grant away: holders are ahead of all waiters. A holder
//     can be asked to release (Revoke, PriorityLockConfig.Ask), and forced if it has allowed
//     that (RevokeForced).
//   - A contender's last listing before its grant decides. A contender of higher priority
//     that joins between that listing and the grant waits.
//   - Lower priorities starve as long as higher ones keep coming. Within one priority no
//     contender starves, because later contenders, readers included, are behind it.
//
// # Why exclusion holds
//
// In the wait queue of a Lock the smallest number is granted, and no later contender can be
// ahead of it, so a listing is enough. Here a later contender can be ahead. So a grant needs
// another step, the claim: one transaction that replaces the contender's waiting znode by a
// holding znode. Only claims create holding znodes.
//
// ZooKeeper commits a claim only if no writer has claimed since the contender's listing. A
// writer's claim writes the path's znode. Every claim checks that this znode has the version
// that was read before the listing. So:
//
//   - Of two writers, or a writer and a reader that claims later, the later one has listed
//     the wait queue after the earlier claim, or is refused. It has seen that the writer
//     holds, and does not claim before that writer has left.
//   - A reader may claim between a writer's listing and the writer's claim. So a writer that
//     has claimed lists the wait queue once more, and waits until it holds alone. No reader
//     can claim any more, as above.
//
// This does not depend on priorities. They only decide which contender tries to claim.
//
// # Znodes
//
// Waiting contenders are ephemeral children of the path, named
// _c_<guid>-read-<YY>-<sequence> and _c_<guid>-write-<YY>-<sequence>. YY is the priority.
// Holders are named -reading- and -writing- instead, with the same guid, priority and number,
// so that an operator sees the holders. Contenders of a SharedLock at the same path ignore
// them. The data of the path's znode names the successor. A path with other data is refused
// (ErrMismatch).
//
// # What a token is worth
//
// The token is the czxid of the holding znode, which the claim creates. It grows with every
// grant, whatever the order of joining. For the tokens of readers see SharedLock.
type PriorityLock interface {
	// Path is the path of the lock.
	Path() string

	// AcquireRead and AcquireWrite join and wait for their turn, as Lock.Acquire does.
	// Place.Znode is the waiting znode, and Hold.Znode the holding one.
	AcquireRead(ctx context.Context) (PriorityHold, error)
	AcquireWrite(ctx context.Context) (PriorityHold, error)

	// TryRead and TryWrite do not wait for others, as Lock.TryAcquire. They do not ask
	// holders to release.
	TryRead(ctx context.Context) (PriorityHold, error)
	TryWrite(ctx context.Context) (PriorityHold, error)

	// Contenders returns holders and waiters, in the order above, as Lock.Contenders does.
	Contenders(ctx context.Context) ([]Contender, error)

	// Revoke asks a contender to release, as SharedLock.Revoke does. A waiter keeps the
	// request when it is granted.
	Revoke(ctx context.Context, znode string) error

	// RevokeForced asks a contender to release, and deletes its znode when its grace has
	// passed, as SharedLock.RevokeForced does. If the contender is granted in the meantime,
	// its grace starts again.
	RevokeForced(ctx context.Context, znode string) error
}

// PriorityHold is a granted PriorityLock.
//
// It cannot be downgraded: the claim as a reader would change its znode and its token, on which
// other processes may rely.
type PriorityHold interface {
	Hold

	// Mode is the mode that was acquired.
	Mode() Mode

	// Revoked is SharedHold.Revoked. Contenders of higher priority with Ask also close it.
	Revoked() <-chan struct{}

	// HandOff releases the lock to a chosen waiter, given by the path of its znode. From then
	// on this successor is ahead of all other waiters, whatever their priority. So no
	// contender that conflicts with it is granted before the successor is granted or has
	// left. If the successor leaves first, or its session ends, HandOff has no effect on the
	// order.
	//
	// Stop acting as the holder before you call HandOff. It returns nil when one transaction
	// has released the lock and stored the successor. Then Done is closed, and Err is
	// ErrReleased, which a later Release also returns.
	//
	// If the error matches ErrNoNode (the successor does not wait), ErrContended (another
	// holder has chosen a successor that still waits) or ErrInvalid, nothing has changed and
	// the lock is held. If it matches ErrUnknownOutcome, call Release, which is safe in both
	// cases. If the hold was lost, the error matches ErrNotHeld.
	//
	// Lock, SharedLock and Election have no HandOff: their first waiter is granted without
	// asking, so choosing another one could not stop it.
	HandOff(ctx context.Context, successor string) error
}

// LowestPriority is the largest number of a priority, of a contender or of an element. It
// has two digits.
const LowestPriority = 99

// PriorityLockConfig configures a PriorityLock. The zero value has the highest priority.
type PriorityLockConfig struct {
	// Priority is from 0, the highest, to LowestPriority.
	Priority int

	// Ask makes a waiter ask the holders of lower priority that block it to release, as
	// Revoke does. It skips holders that are not Revocable. It costs a read and a write for
	// each holder.
	Ask bool

	// Strategy is how to wait; "" and Handoff are Predecessor.
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
