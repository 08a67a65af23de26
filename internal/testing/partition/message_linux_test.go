package partition_test

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// message is a report of a client process to the test: one line of JSON for the call of an
// operation, and one for its end. A client that is killed leaves calls without an end. Their
// outcome is unknown.
type message struct {
	At      int64         // now(), the same clock in all processes
	Call    int64         // At of the call
	Client  int           // the process; the test fills it in
	Session int64         // of ZooKeeper
	Op      int64         // counted in the process
	End     end           // calling, or how it ended
	Kind    kind          // of the operation
	Path    string        // that it uses
	In      int64         // a value or a difference
	Expect  int64         // a revision
	Out     int64         // the answer
	Rev     int64         // a revision
	Token   recipes.Token // of the hold under which it is made
	Text    string        // for people
}

// end is how an operation ended.
type end string

const (
	calling end = ""
	done    end = "done"
	refused end = "refused" // refused, because ZooKeeper has another revision
	unknown end = "unknown"
	failed  end = "failed" // known not to have happened
)

// endOf classifies an error as the contract does.
func endOf(err error) end {
	switch {
	case err == nil:
		return done
	case errors.Is(err, recipes.ErrUnknownOutcome):
		return unknown
	case errors.Is(err, recipes.ErrBadVersion), errors.Is(err, recipes.ErrNodeExists):
		return refused
	}
	return failed
}

// kind is the kind of an operation or event.
type kind string

const (
	add  kind = "add"  // to a counter
	read kind = "read" // a counter
	get  kind = "get"  // from a configuration
	set  kind = "set"
	del  kind = "delete"
	put  kind = "put" // into a queue
	take kind = "take"

	granted  kind = "granted" // a lock or a leadership
	turn     kind = "turn"    // a turn of a contender of another library
	closed   kind = "closed"  // Done has closed
	released kind = "released"
	write    kind = "write" // under the guard of a grant

	readStore  kind = "read store"  // a request to the test process, which keeps two stores
	writeStore kind = "write store" // one of the stores compares tokens

	begin    kind = "begin" // a transaction
	vote     kind = "vote"
	decision kind = "decision"

	torn kind = "torn" // a reader read different values from two registers that are written together
)

// reply answers a message to a store.
type reply struct {
	Op      int64
	Value   int64
	Refused bool
}

// now returns the machine's monotonic clock in nanoseconds. It is the same in all processes.
func now() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic(err)
	}
	return ts.Nano()
}

// In each round the clients use new counters, keys and queues. So a history is short and can
// be checked.
const (
	round            = 500 * time.Millisecond
	lanes            = 4 // of each kind, side by side
	opsInRound       = 6 // of each client in each lane
	transactionRound = 3 * time.Second
)
