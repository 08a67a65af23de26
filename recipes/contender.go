package recipes

import (
	"fmt"
	"slices"
	"time"
)

// Kind is a recipe whose contenders stand in line. Each kind has a wait queue of its own.
// A contender that meets one of another kind at its path fails with ErrForeign.
type Kind string

// The kinds.
const (
	KindLock         Kind = "lock"
	KindSharedLock   Kind = "shared-lock"
	KindPriorityLock Kind = "priority-lock"
	KindSemaphore    Kind = "semaphore"
	KindElection     Kind = "election"
)

var kinds = []Kind{KindLock, KindSharedLock, KindPriorityLock, KindSemaphore, KindElection}

// Validate reports, as an ErrInvalid, that there is no such kind.
func (k Kind) Validate() error {
	if !slices.Contains(kinds, k) {
		return fmt.Errorf("%w: %q is not a kind of contender; the kinds are %q", ErrInvalid, k, kinds)
	}
	return nil
}

// Contender is one place in a line: a znode that somebody created to take part
// in a recipe.
type Contender struct {
	Kind Kind
	// Dialect is the one whose name the znode has. Curator's InterProcessMutex and
	// go-zookeeper's Lock have names of the dialect ZooKeeper. Of kazoo's names, those
	// of an Election and a WriteLock are those of a Lock.
	Dialect Dialect

	// Znode is the path of the contender's znode, below the session's chroot.
	Znode string
	// Sequence is the number that ZooKeeper gave the znode. It wraps from
	// 2147483647 to -2147483648; compare contenders by their place in the
	// slice that you got, not by this.
	Sequence int32
	// Token is the czxid of the znode: the fencing token that this contender
	// has, or will have, when it is granted. It is 0 while a contender of a
	// PriorityLock waits: the grant makes another znode.
	Token Token
	// SessionID is the ZooKeeper session that owns the znode.
	SessionID int64
	// Since is when the znode was created, by the server's clock.
	Since time.Time
	// Data is what the contender stored: the Data of its configuration, or the
	// proposal given to Campaign. Marks that the recipe keeps beside it are
	// left out.
	Data []byte

	// Holds: the contender is granted, or is about to learn that it is.
	Holds bool

	// Mode is what a contender of a SharedLock or PriorityLock wants to do, and
	// "" for other kinds.
	Mode Mode
	// Downgraded: the contender of a SharedLock was a writer and only reads now.
	// Mode is Reading; the name of its znode still says write-.
	Downgraded bool
	// Revocable and Grace are what a contender of a SharedLock or PriorityLock
	// allowed when it joined.
	Revocable bool
	Grace     time.Duration
	// Revoked: it was asked to give way.
	Revoked bool

	// Priority is that of a contender of a PriorityLock.
	Priority int
	// Successor: a holder of the PriorityLock has named the contender to be
	// granted next (PriorityHold.HandOff).
	Successor bool
}

// Lines are the contenders at one path.
type Lines struct {
	// Contenders has the line of one kind after the other, in the order in which the kinds
	// are declared. Within a kind they are in the order in which they are granted.
	Contenders []Contender
	// Permits is the number of permits that the contenders of a Semaphore have agreed
	// on. It is 0 if no number was agreed on, or semaphores were not asked for. The
	// path can have a number without contenders.
	Permits int
	// Unknown is the number of ephemeral sequential children that no recipe has made
	// whose names are known. They may be contenders of a program that looks for none of
	// these. It is counted if all kinds were asked for.
	Unknown int
	// Verdicts say for each recipe, in each of its dialects, what a contender of it would
	// meet. They are there if all kinds were asked for, and none from an older plugin.
	Verdicts []Verdict
}

// Verdict says what a contender of one recipe in one dialect would meet at a path.
type Verdict struct {
	Kind    Kind
	Dialect Dialect
	// Foreign is a contender with which it shares no wait queue, so that it would fail
	// with ErrForeign. It is nil if the contender would join the line.
	Foreign *ForeignError
}

// Of returns the contenders of one kind, in order.
func (l Lines) Of(kind Kind) []Contender {
	var line []Contender
	for _, c := range l.Contenders {
		if c.Kind == kind {
			line = append(line, c)
		}
	}
	return line
}

// Place says where a contender stands when it has joined a line.
type Place struct {
	// Znode is the path of the contender's own znode.
	Znode string
	// Position is the number of contenders ahead: 0 is the first in line.
	// It is UnknownPosition where the strategy does not need to know it.
	Position int
}

// UnknownPosition is the Position of a contender that waits by [Handoff] and has
// not listed the line. Contenders lists it.
const UnknownPosition = -1
