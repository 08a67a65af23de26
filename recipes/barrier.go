package recipes

import "context"

// Barrier blocks all who wait at it until it is removed. It is a name, holds no
// state, and may be used by any number of goroutines.
//
// Source: ZooKeeper Recipes, "Barriers": "The barrier is in place if the barrier
// node exists." The node is the path itself, persistent, so that it stands
// though whoever placed it has died: somebody has to remove it. The text does not
// say how it is placed and removed; see Place and Remove for what a lost reply
// means there.
type Barrier interface {
	// Path is the path of the barrier node.
	Path() string

	// Set puts the barrier in place, with data for people who look at the
	// znode (why do we wait?), and what is missing above it. If it is in place
	// already that is no error, and its data stays. It returns when the barrier
	// is known to be in place, or was at a moment during the call.
	//
	// If the reply is lost it looks. Only if the barrier is not in place then, and
	// something has come or gone beside it meanwhile, it cannot tell whether it
	// was placed and removed again: the error matches ErrUnknownOutcome, and
	// nothing is sent again, because that could put back a barrier that somebody
	// has removed. So it does if ctx ends, or the session is lost, after the
	// request was sent.
	Set(ctx context.Context, data []byte) error

	// Remove takes the barrier away, and so lets everybody pass that waits. If it
	// is not in place that is no error. It removes at most one barrier: after a
	// lost reply, one that was placed since is left alone. Where that cannot be
	// known, because the barrier was placed between the look with which Remove
	// begins and the lost request, or because ctx ends, or the session is lost,
	// after the request was sent, the error matches ErrUnknownOutcome.
	Remove(ctx context.Context) error

	// Wait returns when the barrier is not in place. It takes the steps of the
	// text: look with a watch, and if the node exists, wait for the watch and look
	// again; a barrier that is not in place is not watched. If ctx ends first it
	// returns ctx's error; if the session is lost, an error that matches
	// ErrSessionLost; if it may not read the node, ErrAccessDenied, because the
	// servers would not tell it of the removal. A lost connection is not an error:
	// it looks again when it is back. A barrier that is removed and placed again
	// before the look that follows the removal holds it still. In an ensemble the
	// look is answered by the session's server, which may lag behind a Place that
	// another session has just returned from: whoever is told to wait by who has
	// placed it can pass.
	Wait(ctx context.Context) error

	// IsSet reports whether the barrier is in place. It costs one read, and may
	// be outdated on arrival.
	IsSet(ctx context.Context) (bool, error)
}
