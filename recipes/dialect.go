package recipes

import (
	"fmt"
	"slices"
	"strings"
)

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
