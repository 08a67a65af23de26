package recipes

import (
	"fmt"
	"slices"
	"time"
)

// Kind is a recipe with a wait queue. Each kind has a separate one. A contender that finds
// one of another kind at its path fails with ErrForeign.
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

// Validate returns an ErrInvalid if there is no such kind.
func (k Kind) Validate() error {
	if !slices.Contains(kinds, k) {
		return fmt.Errorf("%w: %q is not a kind of contender; the kinds are %q", ErrInvalid, k, kinds)
	}
	return nil
}

// Contender is a znode in the wait queue of a path.
type Contender struct {
	Kind Kind
	// Dialect is the dialect of the znode's name. Curator's InterProcessMutex and
	// go-zookeeper's Lock use names of the dialect ZooKeeper. kazoo's Election and
	// WriteLock use the names of its Lock.
	Dialect Dialect

	// Znode is the path of the contender's znode, below the session's chroot.
	Znode string
	// Sequence is the sequence number of the znode. It overflows from 2147483647 to
	// -2147483648: order contenders by their index in Lines.Contenders.
	Sequence int32
	// Token is the czxid of the znode, which is the fencing token of the grant. It is 0
	// while a contender of a PriorityLock waits, because its grant creates another znode. With a
	// Slot it is the zxid of the claim.
	Token Token
	// SessionID is the ZooKeeper session that owns the znode.
	SessionID int64
	// Since is when the znode was created, by the server's clock.
	Since time.Time
	// Data is the Data of the contender's configuration, or the proposal of a candidate.
	// Marks that the recipe stores beside it are removed.
	Data []byte

	// Holds reports that the contender is granted. It may not have noticed that yet.
	Holds bool

	// Mode is the mode of a contender of a SharedLock or PriorityLock, and "" for other
	// kinds.
	Mode Mode
	// Downgraded reports that the contender of a SharedLock was a writer and now reads.
	// Its Mode is Reading, although the name of its znode still contains write-.
	Downgraded bool
	// Revocable and Grace are from the configuration of a contender of a SharedLock or
	// PriorityLock.
	Revocable bool
	Grace     time.Duration
	// Revoked reports that the contender was asked to release.
	Revoked bool

	// Slot is the number of a holder of Slots. It is nil for other contenders, and until the
	// contender has claimed it.
	Slot *int

	// Priority is the priority of a contender of a PriorityLock.
	Priority int
	// Successor reports that a holder of the PriorityLock has chosen this contender as the
	// next one (PriorityHold.HandOff).
	Successor bool
}

// Lines are the contenders at one path.
type Lines struct {
	// Contenders has the wait queues of all kinds, one after the other, in the order of
	// the Kind constants. Within a kind, contenders are in the order of their grants.
	Contenders []Contender
	// Permits is the number of permits that a Semaphore has stored at the path. It is 0 if
	// the path has no number, or if KindSemaphore was not requested. It remains when all
	// contenders have left.
	Permits int
	// Unknown is the number of ephemeral sequential children whose names belong to no known
	// recipe. They may be contenders of a program that ignores all others. They are counted
	// only if all kinds were requested.
	Unknown int
	// Verdicts has one entry per recipe and dialect. It is set if all kinds were requested,
	// and empty if the plugin is too old.
	Verdicts []Verdict
}

// Verdict says whether a contender of a recipe, in a dialect, could use a path.
type Verdict struct {
	Kind    Kind
	Dialect Dialect
	// Foreign is the third-party contender that would make it fail with ErrForeign. It is
	// nil if the new contender would join the wait queue.
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

// Place says where a contender is in the wait queue after it has joined.
type Place struct {
	// Znode is the path of the contender's own znode.
	Znode string
	// Position is the number of contenders ahead; 0 is the first. It is UnknownPosition if
	// the strategy did not need to read it.
	Position int
}

// UnknownPosition is the Position of a contender that waits by [Handoff] and has not listed
// the wait queue. Contenders lists it.
const UnknownPosition = -1
