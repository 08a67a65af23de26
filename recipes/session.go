package recipes

import (
	"context"
	"time"
)

// Session is one ZooKeeper session. Ephemeral znodes live as long as it, and so do
// holds and places in line. It hands out recipes by path.
//
// A session ends once. When it is lost it stays lost. Nothing replaces it silently,
// because everything that it held is gone, and only the application can know what
// that means. Open another one.
//
// All methods may be called from several goroutines.
type Session interface {
	// ID is ZooKeeper's session id. It never changes.
	ID() int64

	// Timeout is the session timeout that the server granted. It may differ from the
	// one asked for.
	Timeout() time.Duration

	// State returns the present state.
	State() State

	// Events returns a channel that first gives the present state, then every change.
	// Changes between two receives are merged into the latest. So a slow reader may
	// miss a short suspension, but never the loss, which is the last event. The
	// channel is closed after the loss, or when ctx ends: read it until then, or end
	// ctx.
	Events(ctx context.Context) <-chan Event

	// Done is closed when the session has ended, for whatever reason.
	Done() <-chan struct{}

	// Err is nil until the session has ended. Then it says why: it matches
	// ErrSessionLost and one of its reasons.
	Err() error

	// Lock returns the lock at path. It sends nothing, so the error can only be
	// ErrInvalid (a bad path or strategy). Locks of one path are interchangeable. A
	// Lock needs no closing.
	Lock(path string, cfg LockConfig) (Lock, error)

	// Election returns the election at path, on the same terms as Lock.
	Election(path string, cfg ElectionConfig) (Election, error)

	// SharedLock returns the read-write lock at path, on the same terms.
	SharedLock(path string, cfg SharedLockConfig) (SharedLock, error)

	// Semaphore returns the semaphore at path, on the same terms.
	Semaphore(path string, cfg SemaphoreConfig) (Semaphore, error)

	// Slots returns the semaphore with numbered permits at path, on the same terms. It has
	// no other dialects.
	Slots(path string, cfg SemaphoreConfig) (Slots, error)

	// PriorityLock returns the read-write lock with priorities at path, on the same
	// terms.
	PriorityLock(path string, cfg PriorityLockConfig) (PriorityLock, error)

	// Queue returns the queue at path, on the same terms as Lock: the error can only
	// be ErrInvalid (a bad path or configuration).
	Queue(path string, cfg QueueConfig) (Queue, error)

	// PriorityQueue returns the priority queue at path, on the same terms.
	PriorityQueue(path string, cfg QueueConfig) (PriorityQueue, error)

	// Group returns the group at path, on the same terms; a bad name is
	// ErrInvalid too.
	Group(path string, cfg GroupConfig) (Group, error)

	// Barrier returns the barrier at path, on the same terms.
	Barrier(path string) (Barrier, error)

	// DoubleBarrier returns the double barrier at path, on the same terms; a bad
	// size is ErrInvalid too.
	DoubleBarrier(path string, cfg DoubleBarrierConfig) (DoubleBarrier, error)

	// Transaction returns the two-phase commit at path, on the same terms.
	Transaction(path string, cfg TransactionConfig) (Transaction, error)

	// Names returns the directory of names at path, on the same terms.
	Names(path string) (Names, error)

	// Configuration returns the configuration at path, on the same terms.
	Configuration(path string) (Configuration, error)

	// Counter returns the counter at path, on the same terms.
	Counter(path string, cfg CounterConfig) (Counter, error)

	// Latch returns the latch at path, on the same terms.
	Latch(path string, cfg LatchConfig) (Latch, error)

	// Contenders returns who stands in line at path: all kinds at once, or only the
	// kinds that are given.
	//
	// Here all dialects are shown. Lock.Contenders and its like show the line as that lock
	// sees it: who stands in it with the lock's own dialect.
	//
	// The answer may be outdated on arrival. If the path does not exist, nobody
	// stands in line, which is not an error. A bad path or an unknown kind is
	// ErrInvalid. It costs one read for the line and one for each contender. For
	// semaphores and priority locks it costs one more for the path.
	Contenders(ctx context.Context, path string, kinds ...Kind) (Lines, error)

	// Stats returns what this session has sent and received so far.
	Stats(ctx context.Context) (Stats, error)

	// Close ends the session: its ephemeral znodes are deleted, its holds are lost
	// (ErrClosed), and calls that wait return. It returns nil when the server has
	// confirmed that.
	//
	// If ctx ends or the connection fails first, the session is over all the same
	// for this process, and the error matches ErrUnknownOutcome. The server then
	// removes the znodes at the session timeout at the latest. Later calls wait for
	// the first and return its result.
	Close(ctx context.Context) error
}

// Opener opens a session. Each way to reach ZooKeeper, in process or through a
// plugin, is an Opener.
//
// It returns when the session is established. If no server could be reached before
// ctx ended, the error matches ErrUnavailable and says what the last attempt met.
// Where ctx has no deadline, [DefaultOpenTimeout] is one.
type Opener func(ctx context.Context, cfg SessionConfig) (Session, error)

// DefaultOpenTimeout bounds an Opener whose context has no deadline.
const DefaultOpenTimeout = 15 * time.Second

// State is the state of a session.
type State int

const (
	// Connected: a server answers.
	Connected State = iota + 1
	// Suspended: the connection is lost. The session goes on if it is back in time.
	// Holds still stand: nobody else can be granted before Lost, on the terms of "What
	// a lock here is worth". An application that wants to be more careful pauses here.
	Suspended
	// Lost: the session has ended.
	Lost
)

func (s State) String() string {
	switch s {
	case Connected:
		return "connected"
	case Suspended:
		return "suspended"
	case Lost:
		return "lost"
	}
	return "unknown"
}

// Event is a change of a session's state.
type Event struct {
	State State
	// Reason is set when State is Lost; it matches ErrSessionLost.
	Reason error
}

// Stats counts what a session sent and received since it was opened.
type Stats struct {
	// Reads and Writes are requests by what they cost the server. A write is a
	// transaction that an ensemble agrees on. Syncs (see ByKind), pings and the
	// opening and closing of the session are in neither.
	Reads, Writes int64
	// Pings counts keep-alive requests.
	Pings int64
	// WatchEvents counts notifications received.
	WatchEvents int64
	// RequestBytes and ResponseBytes count what went over the wire, watch events and
	// pings included.
	RequestBytes, ResponseBytes int64
	// Reconnects counts connections after the first.
	Reconnects int64
	// Handoffs counts the grants that followed from the predecessor's release alone.
	// Fallbacks counts how often contenders that wait by [Handoff] had to list their
	// line instead. Then the predecessor was not where its number says, gave up,
	// died, or could not be trusted.
	Handoffs, Fallbacks int64
	// Asked counts the grants for which the session had to ask the leader first, because
	// it was not proved that the leader keeps the session for long enough.
	Asked int64
	// ByKind counts requests by operation ("create", "getChildren2", ...).
	ByKind map[string]int64
}
