package recipes

import (
	"context"
	"fmt"
	"time"
)

// SharedLock is a lock with readers and writers: a writer is granted alone, readers
// together. Like a Lock it is a name and a way of waiting, and holds no state. Any
// number of goroutines may use it. It is not re-entrant, and each Acquire is another
// contender.
//
// Everybody stands in one line, in the order of joining. A reader waits for the
// writers ahead, a writer for everybody ahead. Nobody waits for contenders behind.
// So neither starves: a reader that comes after a waiting writer waits for it. When
// a writer leaves, all readers between it and the next writer are granted at once,
// and nobody else wakes up. The text explains why waking these readers is not a
// herd.
//
// Source: ZooKeeper Recipes, "Shared Locks", and "Revocable Shared Locks" with its
// forced form. Contenders are ephemeral sequential children of the path, named
// _c_<guid>-read-<sequence> and _c_<guid>-write-<sequence>. The guid comes first, as
// for locks (the text writes guid-/read-). The text has a reader watch the writer
// "having the next lowest sequence number": that is the nearest ahead. Children of
// other names are ignored. Contenders of other libraries that follow the text can
// stand in the same line.
//
// A reader cannot be upgraded to a writer: of two readers that upgraded, each would
// wait for the other to leave. Release, and acquire for writing. What was read may
// have changed by then.
//
// # What a reader's token is worth
//
// Readers share, so a smaller token does not mean that a reader's time is over. A
// store must not refuse a reader because it has seen the token of another reader.
// Compared with writers' tokens it works. Each writer's token is larger than those
// of all that were granted before it, and smaller than those of all granted after
// it. A store that remembers the largest writer's token, and refuses smaller ones,
// cannot be harmed by late readers or writers.
type SharedLock interface {
	// Path is the path the lock was made with.
	Path() string

	// AcquireRead and AcquireWrite join the line and wait for their turn, on the
	// terms of Lock.Acquire.
	AcquireRead(ctx context.Context) (SharedHold, error)
	AcquireWrite(ctx context.Context) (SharedHold, error)

	// TryRead and TryWrite do not wait for others, on the terms of Lock.TryAcquire.
	// A reader is refused, with ErrContended, if a writer is ahead, even one that
	// waits itself.
	TryRead(ctx context.Context) (SharedHold, error)
	TryWrite(ctx context.Context) (SharedHold, error)

	// Contenders returns who stands in line, in order, on the terms of
	// Lock.Contenders.
	Contenders(ctx context.Context) ([]Contender, error)

	// Revoke asks a contender, named by the path of its znode, to give way. It writes
	// the text's "unlock" into the znode, and the contender's Revoked closes. Revoke
	// returns nil when that is written, or the contender has left by itself. The
	// contender decides whether it gives way, and when: watch Contenders, or simply
	// join the line. A waiter learns of the request when it is granted.
	//
	// If the contender did not join with Revocable, the error matches
	// ErrNotRevocable, and its znode is untouched. If the znode is not that of a
	// contender of this path, the error is ErrInvalid. If ctx ends first, the
	// contender may have been asked. Asking twice is asking once.
	Revoke(ctx context.Context, znode string) error

	// RevokeForced is the text's revocation with "freaking laser beams". It asks as
	// Revoke does. It waits until the contender has left, or until the grace is over
	// that the contender allowed when it joined. Then it deletes the znode. It
	// returns nil when the znode is known to be gone.
	//
	// The grace is counted from the moment when this call knows the request to be
	// written. So it is never shorter than allowed, also when others had asked
	// before.
	//
	// If the contender did not allow it (Grace is zero), the error matches
	// ErrNotRevocable, and the contender is not even asked. If ctx ends first, the
	// contender has been asked and nothing more happens to it.
	//
	// A holder that is deleted may not know it yet, and go on: see
	// SharedLockConfig.Grace.
	RevokeForced(ctx context.Context, znode string) error
}

// Mode is what a contender of a SharedLock or PriorityLock wants to do.
type Mode string

// The modes.
const (
	Reading Mode = "read"
	Writing Mode = "write"
)

// SharedHold is a granted read or write lock.
type SharedHold interface {
	Hold

	// Mode is Writing for a write lock until it has been downgraded.
	Mode() Mode

	// Downgrade makes a write lock a read lock, without a moment in which another
	// contender could write. The readers behind, as far as the next writer, are
	// granted, and writers go on waiting. Token and Znode do not change. Downgrade
	// fails with ErrInvalid on a read lock, and returns nil on one that was
	// downgraded before.
	//
	// Stop writing before you call it. After any error but ErrInvalid, go on as a
	// reader: it may have happened, and calling again is harmless. If the hold no
	// longer stands, the error matches ErrNotHeld.
	//
	// The znode keeps its name and its place, and a mark in its data says that the
	// holder only reads. (A new read- znode would stand behind the waiting writers.
	// The first of them would be granted as soon as the write- znode goes: both would
	// hold.)
	//
	// A reader of another library does not know the mark. It waits until the znode is
	// gone, as the text has it. It waits longer than it has to, and nobody can write
	// in that time.
	Downgrade(ctx context.Context) error

	// Revoked returns a channel that is closed when another client has asked for the
	// lock: finish and release. As with Done, the first call asks the server, in the
	// background, to tell; the two share what that costs. The channel is never closed
	// if the lock was not made Revocable, and may not be closed once the hold is
	// over. So select on Done beside it.
	Revoked() <-chan struct{}
}

// SharedLockConfig says how to stand in line. The zero value is good.
type SharedLockConfig struct {
	// Strategy is how to wait; "" is DefaultStrategy.
	Strategy Strategy

	// Dialect says who stands in the same line; "" is DefaultDialect. Curator shares
	// it with InterProcessReadWriteLock, Kazoo with ReadLock and WriteLock.
	//
	// Readers of the other library do not know the mark of Downgrade, and wait until
	// the znode is gone. In its own line Curator 5.4 lets a writer that waits in
	// beside one that has become a reader: Curator's reader stands behind it. Before
	// kazoo 2.9, a ReadLock also waits for writers behind it, which wait for it
	// (kazoo#649). Bound each wait where such readers are. Revocable needs the
	// default: the other libraries neither ask nor answer.
	Dialect Dialect

	// Data are stored in the contender's znode, as in LockConfig.
	Data []byte

	// Joined is called on the terms of LockConfig.Joined.
	Joined func(Place)

	// Revocable allows others to ask for the lock: SharedHold.Revoked.
	Revocable bool

	// Grace, if not zero, allows others to take the lock away (RevokeForced) that
	// long after they have asked for it. It needs Revocable, and cannot be changed
	// later. It is stored in the znode in whole milliseconds; less than one is
	// refused. The hold is then lost, with ErrRevoked. A holder that is stuck does
	// not notice, so guard what it writes by Write or by its Token.
	Grace time.Duration
}

// Validate reports, as an ErrInvalid, which field cannot be used.
func (c SharedLockConfig) Validate() error {
	if c.Revocable && c.Dialect != "" && c.Dialect != DefaultDialect {
		return fmt.Errorf("%w: Revocable in the dialect %s: its contenders neither ask nor answer", ErrInvalid, c.Dialect)
	}
	return validateGrace(c.Revocable, c.Grace)
}
