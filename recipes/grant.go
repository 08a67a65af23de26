package recipes

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// Grant is what a Hold, a Leadership, a Membership, a Registration, a Delivery and a Passage
// have in common: something that a session holds until it is released or lost. It is safe
// for concurrent use.
type Grant interface {
	// Token is the fencing token.
	Token() Token

	// Znode is the path of the contender's znode, whose existence is the grant.
	Znode() string

	// Done returns a channel that is closed when the grant must no longer be relied on: the
	// session was lost, another client deleted the znode, the plugin died, or the grant was
	// released. So a goroutine that selects on Done always wakes in the end.
	//
	// The first call sets, in the background, a watch on the znode. A grant whose Done is
	// never called does not pay for that read and that event; the loss of its session still
	// closes Done.
	Done() <-chan struct{}

	// Err is nil until the grant is released or its loss is noticed. Then it is an error that
	// matches ErrNotHeld and gives the reason: ErrRemoved, ErrReleased, or the reason of the
	// session's loss. A deletion by another client is noticed only by Write, or after Done
	// was called.
	Err() error

	// ValidUntil is the local time until which ZooKeeper's leader is proved to keep the
	// grant's session. Until then no other client is granted, unless a client deletes the
	// znode. It is the time at which Done closes if no server answers any more. While a server
	// answers, the proof is renewed ten times per session timeout, so call it again. It becomes
	// earlier only if the session moves to a server that grants a shorter timeout. It sends
	// nothing. It is the zero time when Err is not nil.
	//
	// Compare it only with time.Now in this process: it has a reading of the monotonic clock.
	// The assumptions about clocks and leaders are those of "What a lock is worth".
	ValidUntil() time.Time

	// Write is the guarded write. It commits the operations in one ZooKeeper transaction
	// with a check that the grant's znode exists: all of them while the grant is held, or
	// none. Without operations it only checks the grant.
	//
	// If the grant is not held, the error matches ErrNotHeld. If one of the operations
	// fails, it is a *WriteError. If the connection is lost after the request was sent, it
	// matches ErrUnknownOutcome. Write never retries, because the first request may have
	// been committed.
	Write(ctx context.Context, ops ...Op) error
}

// Hold is a granted lock.
type Hold interface {
	Grant

	// Release releases the lock: it deletes the znode, which wakes the next waiter. It closes
	// Done before it sends anything.
	//
	// It returns nil when the znode is deleted. If the hold was lost before, the error
	// matches ErrNotHeld. If ctx ends first, Release returns ctx's error, and retries the
	// deletion in the background until it is confirmed or the session has ended. Later calls
	// wait for the first and return its result.
	//
	// Any other error means that the server refused the deletion, for example because of an
	// ACL (ErrAccessDenied). The hold is over, but its znode blocks the wait queue until the
	// session ends. When the cause is fixed, the caller can call Release again.
	Release(ctx context.Context) error
}

// Token is a fencing token: the czxid of the holder's znode, the id of the ZooKeeper
// transaction that created it. Contenders are granted in the order in which their znodes were
// created, so each grant of a path has a larger token than the grants before it. Comparing
// tokens of different paths has no meaning. Zero is never a token. For a number of [Slots] it is the
// id of the transaction that claimed it.
type Token int64

// AnyVersion, as a version, matches every version.
const AnyVersion int32 = -1

// Op is one operation of a guarded write. [Create], [Set], [Delete], [DeleteKey] and [Held] return one.
// The zero value is invalid.
type Op struct {
	kind    string
	Path    string // below the session's chroot
	Data    []byte // of Create and Set
	Version int32  // of Set and Delete; AnyVersion to not compare
	grants  []Grant
}

// Kind is "create", "set", "delete", "delete key" or "held", after the function that returned the
// operation.
func (o Op) Kind() string { return o.kind }

// ForKey is for implementations of [Configuration.Key]: it returns the operation for path, the znode of
// a key.
func (o Op) ForKey(path, key string) Op {
	if o.Path = path; o.kind == "delete" && key != "" {
		o.kind = "delete key"
	}
	return o
}

// Grants are the grants that a Held checks, and nil for another operation. There are several if it
// was given the set of an AcquireAll.
func (o Op) Grants() []Grant { return slices.Clone(o.grants) }

// Create creates a persistent znode with SessionConfig.ACL. Its parent must exist.
func Create(path string, data []byte) Op {
	return Op{kind: "create", Path: path, Data: data}
}

// Set replaces the data of a znode if its version matches.
func Set(path string, data []byte, version int32) Op {
	return Op{kind: "set", Path: path, Data: data, Version: version}
}

// Delete deletes a znode without children if its version matches.
func Delete(path string, version int32) Op {
	return Op{kind: "delete", Path: path, Version: version}
}

// DeleteKey is Delete for a key of a Configuration, as [Configuration.Key] returns it. It also counts the
// deletion, so that Configuration.Set and Configuration.Delete notice it.
func DeleteKey(path string, version int32) Op {
	return Op{kind: "delete key", Path: path, Version: version}
}

// Held checks that another grant of the same session is held. For the [Holds] of an AcquireAll it
// checks each of them. If one is not held, nothing is written, and the error is a *WriteError that
// matches ErrNotHeld.
func Held(g Grant) Op {
	op := Op{kind: "held", Path: g.Znode(), Version: AnyVersion}
	switch g := g.(type) {
	case *share:
		op.grants = []Grant{g.Registration}
	case *holds:
		for _, one := range g.held {
			op.grants = append(op.grants, one.Hold)
		}
	default:
		op.grants = []Grant{g}
	}
	return op
}

// Validate reports what is wrong with the operation, as an ErrInvalid.
func (o Op) Validate() error {
	if o.kind == "" {
		return fmt.Errorf("%w: make an operation with Create, Set or Delete; this one is empty", ErrInvalid)
	}
	if err := ValidatePath(o.Path); err != nil {
		return fmt.Errorf("%s: %w", o.kind, err)
	}
	if o.Path == "/" {
		return fmt.Errorf("%w: %s: the root cannot be written", ErrInvalid, o.kind)
	}
	if o.Version < AnyVersion {
		return fmt.Errorf("%w: %s %s: version %d; a version is AnyVersion (-1) or not negative", ErrInvalid, o.kind, o.Path, o.Version)
	}
	return nil
}

// WriteError names the operation because of which ZooKeeper refused a guarded write. Nothing
// was written, and the grant is held.
type WriteError struct {
	Index int   // into the operations given to Write
	Op    Op    // that operation
	Err   error // matches ErrNoNode, ErrNodeExists, ErrBadVersion, ErrNotEmpty, ErrAccessDenied, ErrInternal, or for Held ErrNotHeld
}

func (e *WriteError) Error() string {
	return fmt.Sprintf("guarded write: operation %d (%s %s): %v", e.Index, e.Op.kind, e.Op.Path, e.Err)
}

func (e *WriteError) Unwrap() error { return e.Err }
