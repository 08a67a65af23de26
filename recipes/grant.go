package recipes

import "context"

// Grant is the right to act, for as long as it stands: what a Hold, a Leadership
// and a Membership have in common. All methods may be called from several
// goroutines.
type Grant interface {
	// Token is the fencing token.
	Token() Token

	// Znode is the path of the contender's znode, whose existence is the grant.
	Znode() string

	// Done returns a channel that is closed the moment the grant can no longer be
	// relied on. The session is lost, another client deleted the znode, the plugin
	// died, or the grant was given back. So a goroutine that selects on Done is
	// always woken in the end.
	//
	// The first call asks the server, in the background, to tell when the znode is
	// deleted. A grant whose Done is never called does not pay for that read and
	// that event. The loss of its session closes Done all the same.
	Done() <-chan struct{}

	// Err is nil while nothing is known against the grant. Afterwards it is an error
	// that matches ErrNotHeld and says why: ErrRemoved, ErrReleased, or the reason of
	// the session's loss. Deletion by another client is noticed only by Write, or
	// after Done has been called.
	Err() error

	// Write applies the operations in one ZooKeeper transaction, with a check that
	// the grant's znode exists. Either all of them happen, at a moment when the
	// grant stands, or none does. Without operations it only checks the grant.
	//
	// If the grant does not stand, the error matches ErrNotHeld. If one of the
	// operations fails, it is a *WriteError. If the connection is lost while the
	// request is on its way, it matches ErrUnknownOutcome. Write never sends twice,
	// because it cannot know whether the first request was carried out.
	Write(ctx context.Context, ops ...Op) error
}

// Hold is a granted lock.
type Hold interface {
	Grant

	// Release gives the lock back: it deletes the znode, and the next in line wakes
	// up. It closes Done before it sends anything.
	//
	// It returns nil when the znode is known to be gone. If the hold was lost
	// before, the error matches ErrNotHeld. If ctx ends first, it returns ctx's
	// error. The deletion then goes on in the background until it is known to have
	// happened, or the session is over. Release may be called again: later calls
	// wait for the first and return its result.
	//
	// Any other error says that the server has refused the deletion, because of an
	// ACL (ErrAccessDenied), for example. The hold is over, as Done says, but its
	// znode still blocks the line, until the session ends. It stays the caller's to
	// release: once the reason is mended, another call tries again.
	Release(ctx context.Context) error
}
