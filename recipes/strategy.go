package recipes

import (
	"fmt"
	"slices"
	"strings"
)

// Strategy is how a contender waits. It decides what waiting costs, never which contender is
// next. Contenders with different strategies can share a wait queue.
//
// If the session has been idle for long, a grant costs one or two additional syncs (round
// trips to the leader of the ensemble, without a transaction). A session that has recently
// written or held something sends none.
type Strategy string

const (
	// Herd: every waiter watches the holder. Each release wakes all waiters, and each of
	// them lists the wait queue. With n waiters that costs n-1 watch events and n-1 listings
	// of up to n names. The recipe text calls this trivial and warns against it. It exists
	// for comparison.
	// Source: ZooKeeper Recipes, "Leader Election", the first form.
	Herd Strategy = "herd"

	// Predecessor: every waiter watches the nearest contender ahead that blocks it, so each
	// release wakes exactly one. It costs one watch event and two reads, one of which lists
	// all n names.
	// Source: ZooKeeper Recipes, "Locks" and "Leader Election". Two of the texts say
	// "the smallest sequence number j such that j < i". Then all would watch the holder,
	// which is the herd that the texts want to avoid. The Apache page has the correct
	// largest j < i.
	Predecessor Strategy = "predecessor"

	// Handoff is the default. Every waiter watches the contender with the next smaller number,
	// whose name it can compute without a listing. A release marks itself as one, so its
	// successor lists nothing. It costs one write, two watch events, and one small read when
	// the waiter joins, however many wait. One event wakes the successor. The other one goes to
	// the former holder: while it waited, it watched its own znode. After anything else ahead
	// (a crash, a contender that gives up, a third-party contender) the waiter lists the wait
	// queue, as with Predecessor.
	//
	// Locks, elections and semaphores with one permit support it. The other recipes use
	// Predecessor instead. The nearest writer blocks a reader, not the next smaller number.
	// With two permits, one release does not determine the next holder. And other sessions
	// write to a revocable contender's znode.
	//
	// Contenders are named by marker and number only (lock-0000000012), and only their own
	// session may write to them. No source text has this strategy.
	Handoff Strategy = "handoff"
)

// Strategies returns all strategies, in the order in which they are documented.
func Strategies() []Strategy { return []Strategy{Herd, Predecessor, Handoff} }

// Normalize returns the strategy, or [Handoff] for "". The error matches
// [ErrInvalid] and names the strategies that exist.
func (s Strategy) Normalize() (Strategy, error) {
	return choose("strategy", s, Handoff, Strategies())
}

// Dialect is a compatibility mode: the library whose names, data and rules a recipe uses, so
// that it can share a wait queue with that library's contenders. All contenders of a path
// must use the same recipe and dialect. A contender that finds a third-party contender fails
// with [ErrForeign]. A session uses each path in one dialect; another is [ErrInvalid], unless
// the first was refused with ErrForeign. The Dialect field of each configuration lists the
// recipes of the library that it is compatible with.
//
// In dialects other than [ZooKeeper], contenders wait by [Predecessor] instead of [Handoff],
// because the other library does not release by handoff.
type Dialect string

const (
	// ZooKeeper is the dialect of the recipe texts, and the default. Locks share the wait queue with
	// Curator's InterProcessMutex and LeaderSelector, and with go-zookeeper's Lock.
	ZooKeeper Dialect = "zookeeper"

	// Curator is the dialect of Apache Curator. Tried with 5.4.0.
	Curator Dialect = "curator"

	// Kazoo is the dialect of kazoo, for Python. Tried with 2.8.0. Data must be UTF-8,
	// because kazoo's contenders() fails on anything else. The path is created as a
	// persistent znode, because kazoo's contenders fail when it is deleted.
	Kazoo Dialect = "kazoo"
)

// Dialects returns all dialects, in the order in which they are documented.
func Dialects() []Dialect { return []Dialect{ZooKeeper, Curator, Kazoo} }

// Normalize returns the dialect, or [ZooKeeper] for "". The error matches
// [ErrInvalid] and names the dialects that exist.
func (d Dialect) Normalize() (Dialect, error) {
	return choose("dialect", d, ZooKeeper, Dialects())
}

// choose returns one of the choices, or otherwise for "".
func choose[T ~string](what string, chosen, otherwise T, choices []T) (T, error) {
	switch {
	case chosen == "":
		return otherwise, nil
	case slices.Contains(choices, chosen):
		return chosen, nil
	}
	names := make([]string, len(choices))
	for i, c := range choices {
		names[i] = string(c)
	}
	return "", fmt.Errorf("%w: %s %q is unknown; one of %s", ErrInvalid, what, string(chosen), strings.Join(names, ", "))
}

// ForeignError names a third-party contender. It matches [ErrForeign].
type ForeignError struct {
	Dialect Dialect // of the contender
	Recipe  string  // what its library calls the recipe, such as "LeaderLatch"; "Lock" where several have its names
	Znode   string  // the path of its znode
}

// Error names the contender.
func (e *ForeignError) Error() string {
	return fmt.Sprintf("%v: a %s %s at %s", ErrForeign, e.Dialect, e.Recipe, e.Znode)
}

// Unwrap makes the error match ErrForeign.
func (e *ForeignError) Unwrap() error { return ErrForeign }
