package recipes

import "context"

// Barrier blocks all waiters until it is removed. It is only a path, without state of its
// own, and is safe for concurrent use.
//
// Source: ZooKeeper Recipes, "Barriers": "The barrier is in place if the barrier
// node exists." The node is the path itself. It is persistent: it outlives its creator until
// a client removes it. The text does not say how a barrier is set and removed. Set and
// Remove define the result of a lost reply.
type Barrier interface {
	// Path is the path of the barrier node.
	Path() string

	// Set creates the barrier and its missing parents. The data tells people why they
	// wait. If the barrier exists, Set returns nil and leaves its data. When Set returns
	// nil, the barrier existed at some time during the call.
	//
	// After a lost reply Set reads the znode. If the barrier does not exist, and a sibling
	// was created or deleted since, it may have been set and removed again. Then the error
	// matches ErrUnknownOutcome, and Set does not retry: that could restore a barrier that
	// another client has removed. The error also matches ErrUnknownOutcome if ctx ends, or
	// the session is lost, after the request was sent.
	Set(ctx context.Context, data []byte) error

	// Remove deletes the barrier, so that all waiters pass. If there is no barrier, it
	// returns nil. Remove deletes at most one barrier: after a lost reply it does not delete
	// one that was set since.
	//
	// The error matches ErrUnknownOutcome if the barrier was set between Remove's first
	// read and a request whose reply was lost. It also does if ctx ends, or the session is
	// lost, after the request was sent.
	Remove(ctx context.Context) error

	// Wait returns when the barrier does not exist. As in the text, it reads the node with
	// a watch, waits for the watch, and reads again. It sets no watch on a barrier that does
	// not exist.
	//
	// If ctx ends first, Wait returns ctx's error. If the session is lost, the error matches
	// ErrSessionLost. If the session may not read the node, the error matches
	// ErrAccessDenied, because the servers would not notify it of the removal. A lost
	// connection is not an error: Wait reads again after the reconnect.
	//
	// If the barrier is removed, and set again before Wait reads, Wait keeps waiting. Wait
	// reads from the session's server, which may lag behind a Set that has just returned in
	// another session. So a process can pass although the barrier was set before it was
	// asked to wait.
	Wait(ctx context.Context) error

	// IsSet reports whether the barrier exists. It costs one read. The answer may be
	// outdated when it arrives.
	IsSet(ctx context.Context) (bool, error)
}
