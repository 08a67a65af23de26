package recipes

import "context"

// Barrier blocks all who wait at it until it is removed. It is a name and holds no
// state. Any number of goroutines may use it.
//
// Source: ZooKeeper Recipes, "Barriers": "The barrier is in place if the barrier
// node exists." The node is the path itself. It is persistent, so it stays when
// its creator dies, and somebody has to remove it. The text does not say how a
// barrier is set and removed; Set and Remove say what a lost reply means there.
type Barrier interface {
	// Path is the path of the barrier node.
	Path() string

	// Set puts the barrier in place, and makes the parents that are missing. The
	// data are for people who look at the znode: why do we wait? If the barrier is
	// in place already, that is not an error, and its data stay. Set returns when
	// the barrier is known to be in place, or was at a moment during the call.
	//
	// After a lost reply Set looks. If the barrier is not in place then, and
	// something beside it has come or gone since, Set cannot know whether it was
	// set and removed again. The error then matches ErrUnknownOutcome. Nothing is
	// sent again, because that could put back a barrier that somebody has removed.
	// The error also matches ErrUnknownOutcome if ctx ends, or the session is lost,
	// after the request was sent.
	Set(ctx context.Context, data []byte) error

	// Remove removes the barrier, so that all waiters pass. If it is not in place,
	// that is not an error. Remove removes at most one barrier: after a lost
	// reply it leaves one alone that was set since.
	//
	// The error matches ErrUnknownOutcome where that cannot be known. This is so if
	// the barrier was set between the look with which Remove begins and the lost
	// request. It is so, too, if ctx ends, or the session is lost, after the
	// request was sent.
	Remove(ctx context.Context) error

	// Wait returns when the barrier is not in place. It takes the steps of the
	// text: it looks, with a watch; if the node exists, it waits for the watch and
	// looks again. A barrier that is not in place is not watched.
	//
	// If ctx ends first, Wait returns ctx's error. If the session is lost, the
	// error matches ErrSessionLost. If Wait may not read the node, it is
	// ErrAccessDenied, because the servers would not tell it of the removal. A lost
	// connection is not an error: Wait looks again when it is back.
	//
	// A barrier that is removed, and set again before Wait looks, still holds it. In
	// an ensemble the session's server answers the look. It may lag behind a Set
	// that has just returned in another session. So a process that is told to wait
	// by the one that has set the barrier can still pass.
	Wait(ctx context.Context) error

	// IsSet reports whether the barrier is in place. It costs one read. The answer
	// may be outdated on arrival.
	IsSet(ctx context.Context) (bool, error)
}
