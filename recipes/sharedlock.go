package recipes

import (
	"context"
	"time"
)

// SharedLock is a lock with readers and writers: a writer is granted alone,
// readers together. Like a Lock it is a name and a way of waiting, holds no
// state, may be used by any number of goroutines, is not re-entrant, and each
// Acquire is a contender of its own.
//
// Everybody stands in one line, in the order of joining. A reader waits for the
// writers ahead, a writer for everybody ahead; nobody waits for anybody behind.
// So neither starves: a reader that comes after a waiting writer waits for it.
// When a writer leaves, all readers between it and the next writer are granted
// at once, and nobody else wakes up; the text explains why waking these readers
// is no herd.
//
// Source: ZooKeeper Recipes, "Shared Locks", and "Revocable Shared Locks" with
// its forced form. Contenders are ephemeral sequential children of the path
// named _c_<guid>-read-<sequence> and _c_<guid>-write-<sequence>; the guid is
// put first, as for locks (the text writes guid-/read-). The text has a reader
// watch the writer "having the next lowest sequence number": that is the nearest
// ahead. Children of other names are ignored; contenders of other libraries that
// follow the text can stand in the same line.
//
// There is no upgrade from reader to writer: two readers that upgraded would
// each wait for the other to leave. Release, and acquire for writing; what was
// read may have changed by then.
//
// # What a reader's token is worth
//
// Readers share, so a smaller token does not mean that a reader's time is over:
// a store must not refuse a reader because it has seen the token of another
// reader. Compared with writers' tokens it works: each writer's token is larger
// than those of all who were granted before it, and smaller than those of all
// granted after it. A store that remembers the largest writer's token and
// refuses what has a smaller one cannot be harmed by late readers or writers.
type SharedLock interface {
	// Path is the path the lock was made with.
	Path() string

	// AcquireRead and AcquireWrite join the line and wait for their turn, on
	// the terms of Lock.Acquire.
	AcquireRead(ctx context.Context) (SharedHold, error)
	AcquireWrite(ctx context.Context) (SharedHold, error)

	// TryRead and TryWrite do not wait for others, on the terms of
	// Lock.TryAcquire: a reader is refused, with ErrContended, if a writer is
	// ahead, also one that waits itself.
	TryRead(ctx context.Context) (SharedHold, error)
	TryWrite(ctx context.Context) (SharedHold, error)

	// Contenders returns who stands in line, in order, on the terms of
	// Lock.Contenders.
	Contenders(ctx context.Context) ([]Contender, error)

	// Revoke asks a contender, named by the path of its znode, to give way: it
	// writes the text's "unlock" into the znode, and its Revoked closes. It
	// returns nil when that is written, or the contender has left by itself.
	// Whether it consents, and when, is up to it: watch Contenders, or simply
	// join the line. One that waits for its turn learns of it when it is
	// granted.
	//
	// The error matches ErrNotRevocable if the contender did not join with
	// Revocable, and then its znode is untouched; ErrInvalid if the znode is
	// not a contender's of this path. If ctx ends first it may have been asked;
	// asking twice is asking once.
	Revoke(ctx context.Context, znode string) error

	// RevokeForced is the text's revocation with "freaking laser beams": it
	// asks as Revoke does, waits until the contender has left or the grace that
	// the contender allowed when it joined is over, and then deletes the znode.
	// It returns nil when the znode is known to be gone. The grace is counted
	// from the moment when this call knows the request to be written, so it is
	// never shorter than allowed, also when others had asked before.
	//
	// The error matches ErrNotRevocable if the contender did not allow it
	// (Grace is zero), and then it is not even asked. If ctx ends first, the
	// contender has been asked and nothing more happens to it.
	//
	// A holder that is deleted may not know it yet, and goes on: see
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

	// Downgrade makes a write lock a read lock, without a moment in which
	// anybody else could write: the readers behind, as far as the next writer,
	// are granted, and writers go on waiting. Token and Znode stay what they
	// are. It fails with ErrInvalid on a read lock, and returns nil on one that
	// was downgraded before.
	//
	// Stop writing before you call it. On any error but ErrInvalid, go on as a
	// reader: it may have happened, and calling again is harmless. If the hold
	// no longer stands the error matches ErrNotHeld.
	//
	// The znode keeps its name and its place, and a mark in its data says that
	// it only reads. (A read- node of its own would stand behind the writers
	// that wait, who would be granted as soon as the write- node goes: both
	// would hold.) A reader of another library that does not know the mark
	// waits until the znode is gone, as the text has it: it waits longer than
	// it would have to, and nobody can write meanwhile.
	Downgrade(ctx context.Context) error

	// Revoked returns a channel that is closed when somebody has asked for the
	// lock: finish and release. Like Done, the first call asks the server, in
	// the background, to tell; the two share what that costs. It is never
	// closed if the lock was not made Revocable, and may not be once the hold
	// is over: select on Done beside it.
	Revoked() <-chan struct{}
}

// SharedLockConfig says how to stand in line. The zero value is good.
type SharedLockConfig struct {
	// Strategy is how to wait; "" is DefaultStrategy.
	Strategy Strategy

	// Data is stored in the contender's znode, as in LockConfig.
	Data []byte

	// Joined is called on the terms of LockConfig.Joined.
	Joined func(Place)

	// Revocable lets others ask for the lock: SharedHold.Revoked.
	Revocable bool

	// Grace, if not zero, lets others take the lock away (RevokeForced) that
	// long after they have asked for it. It needs Revocable, is stored in the
	// znode in whole milliseconds (less than one is refused), and cannot be
	// changed later. The hold is then lost, with ErrRevoked; a holder that is
	// stuck does not notice, so what it writes has to be guarded by Write or by
	// its Token.
	Grace time.Duration
}

// Validate reports, as an ErrInvalid, which field cannot be used.
func (c SharedLockConfig) Validate() error { return validateGrace(c.Revocable, c.Grace) }
