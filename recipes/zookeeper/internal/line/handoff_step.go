package line

import "slices"

// This file has the conclusions of a waiter with the strategy Handoff, as pure functions. The
// model in handoff_model_test.go calls them in every possible order of events, up to a bound.

// outcome is the result of waiting for a predecessor.
type outcome int

const (
	handed      outcome = iota // the predecessor held and has released
	changed                    // the predecessor is deleted, or something else has happened
	missing                    // the predecessor did not exist
	reconnected                // unknown: events may have been missed
)

// reason is the event that woke a waiter.
type reason int

const (
	predecessorFired reason = iota // the watch on its predecessor
	ownFired                       // the watch for the deletion of its own znode
	connectionLost                 // the connection on which both were set
)

// sight holds what a waiter read of its predecessor when it set the watch.
type sight struct {
	bare    bool  // its name and its data are those of a bare znode
	version int32 // of its data
	czxid   int64
}

// wake holds what a waiter knows when it wakes.
type wake struct {
	why         reason
	predecessor sight
	mine        int64 // the czxid of the waiter's znode
	changed     bool  // the predecessor's watch reported a change of data, not a deletion
	gone        bool  // the watch for the deletion of the waiter's znode has fired too
}

// outcome interprets the wake-up. A change of the predecessor's data is its release only if all
// of these conditions hold. Otherwise the waiter lists the path.
//
//   - The predecessor is a bare znode: only its own session can write to it.
//   - It was not written when the watch was set, so this change is the first one.
//   - It is older than the waiter's znode. Otherwise its name was used again, and the waiter's
//     znode belonged to a wait queue that is deleted.
//   - The waiter's own znode was not deleted earlier. The server would have reported that
//     first: that watch was set first, and events arrive in order.
func (w wake) outcome() outcome {
	switch {
	case w.why == connectionLost:
		return reconnected
	case w.why == ownFired || w.gone:
		return changed
	case w.changed && w.predecessor.bare && w.predecessor.version == 0 && w.predecessor.czxid < w.mine:
		return handed
	}
	return changed
}

// predecessorsOf returns the contenders ahead of the znode called name in a sorted listing, and
// whether the listing contains the znode. The parent must be older than the znode. If the
// parent was created again, the znode is deleted, and name belongs to another one.
func predecessorsOf(name string, czxid int64, entries []Entry, parentCzxid int64) (predecessors []Entry, found bool) {
	if parentCzxid > czxid {
		return nil, false
	}
	position := slices.IndexFunc(entries, func(e Entry) bool { return e.Name == name })
	if position < 0 {
		return nil, false
	}
	return entries[:position], true
}
