package recipes

import (
	"context"
	"time"
)

// Session is one ZooKeeper session. Its ephemeral znodes, and so its holds and waiting
// contenders, exist until it ends. Opening one returns a [Client], which also has the recipes;
// code that needs only the lifetime of the session takes a Session.
//
// A session ends once. A lost session stays lost, and the library never replaces it: only the
// application knows what the loss of everything that it held means. Open another one.
//
// A Session is safe for concurrent use.
type Session interface {
	// ID is ZooKeeper's session id. It never changes.
	ID() int64

	// Timeout is the session timeout that the server granted. It may differ from the
	// requested one.
	Timeout() time.Duration

	// State returns the current state.
	State() State

	// Events returns a channel that first receives the current state, and then every change.
	// Between two receives only the latest change is kept. So a slow reader may miss a short
	// suspension, but never the loss, which is the last event. The channel is closed after
	// the loss, or when ctx ends. Read it until then, or cancel ctx.
	Events(ctx context.Context) <-chan Event

	// Done is closed when the session has ended, for any reason.
	Done() <-chan struct{}

	// Err is nil until the session has ended. Then it matches ErrSessionLost and one of its
	// reasons.
	Err() error

	// Stats returns what this session has sent and received so far.
	Stats(ctx context.Context) (Stats, error)

	// Close ends the session: its ephemeral znodes are deleted, its holds are lost
	// (ErrClosed), and calls that wait return. It returns nil when the server has
	// confirmed that.
	//
	// If ctx ends or the connection fails first, the session has ended for this process,
	// and the error matches ErrUnknownOutcome. The server then deletes the znodes at the
	// session timeout at the latest. A session that is connected waits 100 ms for the server
	// even if ctx has ended before. So a program may close it with the context that a signal
	// has ended. Later calls wait for the first, or for the end of
	// their ctx, and return its result.
	Close(ctx context.Context) error
}

// Recipes returns the recipes of one session by path, and lists contenders.
//
// Later versions add methods. A type that implements only some of them, such as a fake in a
// test, embeds Recipes, so that it still compiles then.
//
// It is safe for concurrent use.
type Recipes interface {
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

	// Shares returns the shares of the numbers 0 to n-1 at path, on the same terms; a bad n is
	// ErrInvalid too.
	Shares(path string, n int, cfg SharesConfig) (Shares, error)

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

	// Contenders returns the contenders at path: of all kinds, or only of the given ones.
	//
	// It returns contenders of all dialects. Lock.Contenders and its siblings return only
	// those that share the lock's wait queue.
	//
	// The answer may be outdated when it arrives. If the path does not exist, the answer is
	// empty. A bad path or an unknown kind is ErrInvalid. It costs one listing, and one read
	// for each contender. For semaphores and priority locks it costs one more read, of the
	// path.
	Contenders(ctx context.Context, path string, kinds ...Kind) (Lines, error)

	// Children returns the names of the znodes directly below path, whatever recipe or program
	// has created them, sorted. It costs one listing.
	//
	// The answer may be outdated when it arrives. A path that does not exist is ErrNoNode, and
	// a bad path is ErrInvalid.
	Children(ctx context.Context, path string) ([]string, error)
}

// Client is what opening a session returns: the session and its recipes. It ends with the
// session.
type Client interface {
	Session
	Recipes
}

// Opener opens a session, in process or through a plugin.
//
// It returns when the session is established. If no server was reached before ctx ended, the
// error matches ErrUnavailable and has the reason of the last attempt. If ctx has no
// deadline, [DefaultOpenTimeout] applies.
type Opener func(ctx context.Context, cfg SessionConfig) (Client, error)

// DefaultOpenTimeout bounds an Opener whose context has no deadline.
const DefaultOpenTimeout = 15 * time.Second

// State is the state of a session.
type State int

const (
	// Connected: a server answers.
	Connected State = iota + 1
	// Suspended: the connection is lost. If it is back in time, the session continues.
	// Grants are still held: no other client is granted before Lost, as "What a lock is
	// worth" says. A more careful application pauses here.
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
	// Reads and Writes count requests by their cost to the server. A write is a transaction
	// that an ensemble agrees on. Syncs (see ByKind), pings and the opening and closing of
	// the session count as neither.
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
	// Handoffs counts the grants that needed nothing but the predecessor's release.
	// Fallbacks counts how often contenders that wait by [Handoff] listed the wait queue
	// instead, because the predecessor did not have the next smaller number, gave up, died,
	// or could not be trusted.
	Handoffs, Fallbacks int64
	// Asked counts the grants before which the session synced with the leader, because it had
	// no proof that the leader keeps the session for long enough.
	Asked int64
	// ByKind counts requests by operation ("create", "getChildren2", ...).
	ByKind map[string]int64
	// Server is the kind of the servers. It is no count. "" means unknown: the plugin is older.
	Server ServerKind `json:",omitempty"`
}

// ServerKind is what the servers of a session are. A session recognizes it when it is opened,
// without a request.
type ServerKind string

const (
	// ServerZooKeeper is Apache ZooKeeper, or a server that cannot be distinguished from it.
	ServerZooKeeper ServerKind = "zookeeper"
	// ServerKeeper is ClickHouse Keeper, which speaks ZooKeeper's protocol and promises less.
	// docs/servers.md lists what is lost there.
	ServerKeeper ServerKind = "keeper"
)
