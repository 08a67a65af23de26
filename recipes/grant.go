package recipes

import "context"

// Grant is what a Hold and a Leadership have in common: the right to act, for
// as long as it stands. All methods may be called from several goroutines.
type Grant interface {
	// Token is the fencing token.
	Token() Token

	// Znode is the path of the contender's znode, whose existence is the grant.
	Znode() string

	// Done returns a channel that is closed the moment the grant can no longer
	// be relied on: the session is lost, the znode was deleted by somebody
	// else, the plugin died, or the grant was given back. Whoever selects on it
	// is therefore always woken in the end.
	//
	// The first call asks the server, in the background, to tell when the
	// znode is deleted. A grant whose Done is never called does not pay for
	// that read and that event; the loss of its session closes it all the same.
	Done() <-chan struct{}

	// Err is nil while nothing is known against the grant, and afterwards an
	// error that matches ErrNotHeld and says why (ErrRemoved, ErrReleased, or
	// the reason of the session's loss). Deletion by somebody else is noticed
	// only after Done has been called, or by Write.
	Err() error

	// Write applies the operations in one ZooKeeper transaction together with a
	// check that the grant's znode exists: all of them happen, and at a moment
	// when the grant stands, or none does.
	//
	// If the grant does not stand, the error matches ErrNotHeld. If one of the
	// operations fails, it is a *WriteError. If the connection is lost on the
	// way, it matches ErrUnknownOutcome: Write never sends twice, because it
	// cannot know whether the first was carried out. No operations is a plain
	// check of the grant.
	Write(ctx context.Context, ops ...Op) error
}

// Hold is a granted lock.
type Hold interface {
	Grant

	// Release gives the lock back: the znode is deleted and the next in line
	// wakes up. Done is closed before anything is sent.
	//
	// It returns nil when the znode is known to be gone. If the hold was lost
	// before, the error matches ErrNotHeld. If ctx ends first, it returns
	// ctx's error and the deletion goes on in the background until it is known
	// to have happened, or the session is over. It may be called again; later
	// calls wait for the first and return its result.
	Release(ctx context.Context) error
}
