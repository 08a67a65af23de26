package line

import "slices"

// What a contender that waits by handoff concludes from what it has seen is in
// this file, as pure functions. The model in handoff_model_test.go calls the same
// functions in every order of events that can happen, up to a bound.

// outcome is the result of waiting for a predecessor.
type outcome int

const (
	handed      outcome = iota // it held, and has released
	changed                    // it is gone, or something else happened
	missing                    // it was not there to wait for
	reconnected                // nothing is known
)

// reason says what woke a waiter.
type reason int

const (
	predecessorFired reason = iota // the watch on its predecessor
	ownFired                       // the watch for the deletion of its own znode
	connectionLost                 // the connection on which both were set
)

// sight is what a waiter saw of its predecessor when it set the watch.
type sight struct {
	bare    bool  // its name and its data are those of a bare znode
	version int32 // of its data
	czxid   int64
}

// wake is what a waiter knows when it wakes.
type wake struct {
	why         reason
	predecessor sight
	mine        int64 // the czxid of the waiter's znode
	changed     bool  // the watch on the predecessor told a change of data, not a deletion
	gone        bool  // the watch for the deletion of the waiter's znode has fired by now
}

// outcome says what the wake-up means. A change of the predecessor's data is its
// release only if all of this holds; else the waiter lists the line.
//
//   - The predecessor is a bare znode: only its own session can write to it.
//   - It was not written when the watch was set, so the change is the first one.
//   - It is older than the waiter: otherwise its name was given again, and the
//     waiter's znode is of a line that is gone.
//   - The waiter's own znode has not been deleted before. The server tells that
//     first, because that watch was set first and events keep their order.
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

// predecessorsOf returns the contenders ahead of the znode called name in a listing that
// is in order, and whether the znode stands there. The parent, whose record is
// part of the listing, must be older than the znode: if the parent was made again
// the znode is gone, whoever has its name now.
func predecessorsOf(name string, czxid int64, entries []Entry, parentCzxid int64) (predecessors []Entry, stands bool) {
	if parentCzxid > czxid {
		return nil, false
	}
	position := slices.IndexFunc(entries, func(e Entry) bool { return e.Name == name })
	if position < 0 {
		return nil, false
	}
	return entries[:position], true
}
