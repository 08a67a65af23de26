package recipes

import (
	"context"
	"fmt"
	"time"
)

// SharedLock is a read-write lock: a writer holds it alone, readers hold it together. It is
// only a path and a configuration, without state of its own, and is safe for concurrent use.
// It is not re-entrant, and each Acquire is another contender.
//
// All contenders share one wait queue, in the order of joining. A reader waits for the writers
// ahead, a writer for all contenders ahead. No contender waits for one behind it, so neither
// readers nor writers starve: a reader that joins after a waiting writer waits for it. When a
// writer releases, all readers between it and the next writer are granted at once, and no other
// contender wakes. The text explains why that is not a herd.
//
// Source: ZooKeeper Recipes, "Shared Locks", and "Revocable Shared Locks" with its forced form.
// Contenders are ephemeral sequential children of the path, named _c_<guid>-read-<sequence> and
// _c_<guid>-write-<sequence>. The guid comes first, as for locks (the text writes guid-/read-).
// In the text a reader watches the writer "having the next lowest sequence number": the nearest
// one ahead. Other children are ignored. Contenders of other libraries that follow the text can
// share the wait queue.
//
// A reader cannot be upgraded to a writer: two readers that upgrade would wait for each other.
// Release, and acquire for writing. What was read may have changed by then.
//
// # What a reader's token is worth
//
// Readers share the lock, so a smaller token does not mean that a reader's hold is over. A
// store must not refuse a reader because it has seen the token of another reader. It can
// compare with the tokens of writers: a writer's token is larger than the tokens of all grants
// before it. It is smaller than the tokens of all grants after it. A store that remembers the
// largest token of a writer, and refuses smaller ones, is safe from late readers and writers.
type SharedLock interface {
	// Path is the path of the lock.
	Path() string

	// AcquireRead and AcquireWrite join the wait queue and wait for their turn, as
	// Lock.Acquire does.
	AcquireRead(ctx context.Context) (SharedHold, error)
	AcquireWrite(ctx context.Context) (SharedHold, error)

	// TryRead and TryWrite do not wait for others, as Lock.TryAcquire. A reader fails with
	// ErrContended if a writer is ahead, even a waiting one.
	TryRead(ctx context.Context) (SharedHold, error)
	TryWrite(ctx context.Context) (SharedHold, error)

	// Contenders returns the contenders, in order, as Lock.Contenders does.
	Contenders(ctx context.Context) ([]Contender, error)

	// Revoke asks a contender, given by the path of its znode, to release. It writes the
	// text's "unlock" into the znode, and the contender's Revoked closes. Revoke returns nil
	// when that is written, or when the contender has left. The contender decides whether
	// and when it releases: read Contenders, or join the wait queue. A waiter notices the
	// request when it is granted.
	//
	// If the contender did not join with Revocable, the error matches ErrNotRevocable, and
	// its znode is unchanged. If the znode does not belong to a contender of this path, the
	// error is ErrInvalid. If ctx ends first, the contender may have been asked. A second
	// request has no effect.
	Revoke(ctx context.Context, znode string) error

	// RevokeForced is the text's revocation with "freaking laser beams". It asks as Revoke
	// does, and waits until the contender has left, or until the contender's Grace has
	// passed. Then it deletes the znode. It returns nil when the znode is deleted.
	//
	// The grace counts from the time when this call has confirmed the request. So it is never
	// shorter than allowed, even if another client had asked before.
	//
	// If the contender does not allow it (Grace is zero), the error matches ErrNotRevocable,
	// and the contender is not asked. If ctx ends first, the contender has been asked and
	// nothing else happens.
	//
	// A holder whose znode was deleted may not have noticed yet, and may continue: see
	// SharedLockConfig.Grace.
	RevokeForced(ctx context.Context, znode string) error
}

// Mode is whether a contender of a SharedLock or PriorityLock reads or writes.
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

	// Downgrade converts a write lock to a read lock. No other contender can write in
	// between. The readers up to the next writer are granted, and writers keep waiting.
	// Token and Znode do not change. Downgrade fails with ErrInvalid on a read lock, and
	// returns nil if it was downgraded before.
	//
	// Stop writing before you call it. After any error except ErrInvalid, continue as a
	// reader: the downgrade may have been committed, and calling again is safe. If the hold
	// was lost, the error matches ErrNotHeld.
	//
	// The znode keeps its name and its place, and a mark in its data shows that the holder
	// only reads. (A new read- znode would be behind the waiting writers. When the write-
	// znode is deleted, the first of them would be granted beside the reader.)
	//
	// Readers of other libraries ignore the mark and wait until the znode is deleted, as in
	// the text. That is longer than necessary, and no contender can write in that time.
	Downgrade(ctx context.Context) error

	// Revoked returns a channel that is closed when another client has asked for the lock:
	// finish and release. Like Done, the first call sets a watch in the background; the two
	// share it. The channel is never closed if the lock is not Revocable, and may stay open
	// when the hold is over. So select on Done too.
	Revoked() <-chan struct{}
}

// SharedLockConfig configures a SharedLock. The zero value is the default.
type SharedLockConfig struct {
	// Strategy is how to wait; "" and Handoff are Predecessor.
	Strategy Strategy

	// Dialect selects the libraries that share the wait queue; "" is ZooKeeper. Curator
	// shares it with InterProcessReadWriteLock, Kazoo with ReadLock and WriteLock.
	//
	// Readers of the other library ignore the mark of Downgrade, and wait until the znode is
	// deleted. Curator 5.4's own downgrade puts a reader behind a waiting writer, which is
	// then granted beside it. Before kazoo 2.9, a ReadLock also waits for writers behind it,
	// which wait for it (kazoo#649). If there are such readers, set a time limit for each
	// wait. Revocable requires the default dialect, because the other libraries neither
	// revoke nor react.
	Dialect Dialect

	// Data is stored in the contender's znode, as in LockConfig.
	Data []byte

	// Joined is called as LockConfig.Joined is.
	Joined func(Place)

	// Revocable allows other clients to ask for the lock: see SharedHold.Revoked.
	Revocable bool

	// Grace, if not zero, allows other clients to take the lock away (RevokeForced) that
	// long after they have asked for it. The hold is then lost, with ErrRevoked. Grace
	// requires Revocable, and is stored in the znode in whole milliseconds; less than one is
	// ErrInvalid. A holder that hangs does not notice the loss, so protect its writes by
	// Write or by its Token.
	Grace time.Duration
}

// Validate reports, as an ErrInvalid, which field cannot be used.
func (c SharedLockConfig) Validate() error {
	if c.Revocable && c.Dialect != "" && c.Dialect != ZooKeeper {
		return fmt.Errorf("%w: Revocable in the dialect %s: its contenders neither revoke nor react", ErrInvalid, c.Dialect)
	}
	return validateGrace(c.Revocable, c.Grace)
}

// validateGrace checks what a contender allows others.
func validateGrace(revocable bool, grace time.Duration) error {
	switch {
	case grace != 0 && !revocable:
		return fmt.Errorf("%w: Grace needs Revocable", ErrInvalid)
	case grace != 0 && grace < time.Millisecond:
		return fmt.Errorf("%w: Grace is %v; it must be a millisecond at least, or zero for none", ErrInvalid, grace)
	}
	return nil
}
