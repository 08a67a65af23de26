package recipes

import "context"

// Grant is what a Hold, a Leadership and a Membership have in common: something that a
// session holds until it is released or lost. It is safe for concurrent use.
type Grant interface {
	// Token is the fencing token.
	Token() Token

	// Znode is the path of the contender's znode, whose existence is the grant.
	Znode() string

	// Done returns a channel that is closed when the grant must no longer be relied on. The
	// session is lost, another client deleted the znode, the plugin died, or the grant was
	// released. So a goroutine that selects on Done always wakes in the end.
	//
	// The first call sets, in the background, a watch on the znode. A grant whose Done is
	// never called does not pay for that read and that event; the loss of its session still
	// closes Done.
	Done() <-chan struct{}

	// Err is nil until the grant is released or its loss is noticed. Then it is an error that
	// matches ErrNotHeld and gives the reason: ErrRemoved, ErrReleased, or the reason of the
	// session's loss. Only Write, or a call of Done before, notices a deletion by another
	// client.
	Err() error

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
