package recipes

import (
	"fmt"
	"slices"
	"strings"
)

// Dialect says with whose contenders a recipe stands in one line: whose names, data
// and rules it keeps. All contenders of a path must use the same recipe and dialect. A
// contender that sees one with which it shares no wait queue fails with [ErrForeign].
// One session uses a path in one dialect, until that is refused with ErrForeign; another
// is [ErrInvalid]. The Dialect field of each configuration says which of the library's recipes it
// stands in line with.
//
// A contender in another dialect than [ZooKeeper] waits by [Predecessor] where
// [Handoff] is asked for: the other library does not release by a handoff.
type Dialect string

const (
	// ZooKeeper is the dialect of the recipe texts. Locks share their line with
	// Curator's InterProcessMutex and LeaderSelector, and with go-zookeeper's Lock.
	ZooKeeper Dialect = "zookeeper"

	// Curator is the dialect of Apache Curator. Tried with 5.4.0.
	Curator Dialect = "curator"

	// Kazoo is the dialect of kazoo, for Python. Tried with 2.8.0. Data must be
	// UTF-8, because kazoo's contenders() fails on anything else. The path is made as
	// one that stays: kazoo's contenders fail when it is removed.
	Kazoo Dialect = "kazoo"

	// DefaultDialect is what the empty Dialect means.
	DefaultDialect = ZooKeeper
)

// Dialects returns all dialects, in the order in which they are documented.
func Dialects() []Dialect { return []Dialect{ZooKeeper, Curator, Kazoo} }

// Normalize returns the dialect, or [DefaultDialect] for "". The error matches
// [ErrInvalid] and names the dialects that exist.
func (d Dialect) Normalize() (Dialect, error) {
	return choose("dialect", d, DefaultDialect, Dialects())
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

// ForeignError says which contender of another recipe or dialect was seen. It matches
// [ErrForeign].
type ForeignError struct {
	Dialect Dialect // of the contender that was seen
	Recipe  string  // what its library calls the recipe, such as "LeaderLatch"; "Lock" where several have its names
	Znode   string  // the path of its znode
}

// Error names the contender.
func (e *ForeignError) Error() string {
	return fmt.Sprintf("%v: a %s %s stands at %s", ErrForeign, e.Dialect, e.Recipe, e.Znode)
}

// Unwrap makes the error match ErrForeign.
func (e *ForeignError) Unwrap() error { return ErrForeign }
