package recipes

import (
	"context"
	"fmt"
)

// DoubleBarrier lets a fixed number of members begin a computation together and
// end it together, again and again. It is a name and a number, holds no state,
// and may be used by any number of goroutines; each Enter is a member of its own.
//
// Source: ZooKeeper Recipes, "Double Barriers". Members are ephemeral children of
// the path named _c_<guid>-member-<sequence>; the text's ready node is the child
// ready. Children of other names are ignored, and ready is no member.
//
// The text's barrier can be used once: its ready node stays, and would let the
// next member through alone. Here ready names, in its data, the members that it
// lets in, one name a line. So a member passes if and only if it was one of Size
// members that stood together at one moment: the transaction that writes ready
// checks that each of them is there. A generation is the members that one ready
// names. The next one is formed when no member of the last is left, from those
// that have waited longest; members beyond Size wait for it. Nothing that
// happens on entering can release those who leave.
//
// All members have to use the same Size. It is not compared.
type DoubleBarrier interface {
	// Path is the path the barrier was made with.
	Path() string

	// Size is the number of members.
	Size() int

	// Enter makes a member, with data for people who look at the znodes, and
	// waits until it is one of Size members that enter together.
	//
	// If ctx ends first it returns ctx's error and the member is taken out, in the
	// background, so that it may still be counted for a moment; if the session is
	// lost, an error that matches ErrSessionLost; if another hand deletes the
	// member's znode, ErrRemoved. A lost connection is not an error. In every case
	// of an error the member has not entered, though others may enter with it if it
	// had been counted before it left: for them it is a member that has failed after
	// entering.
	Enter(ctx context.Context, data []byte) (Passage, error)
}

// DoubleBarrierConfig says how many enter together.
type DoubleBarrierConfig struct {
	// Size is the number of members that have to be there; at least 1. All of
	// them are named in one transaction, which bounds it by SessionConfig.MaxPacket: to
	// about 1500 where that is ZooKeeper's default.
	Size int
}

// Validate reports what is wrong with the configuration, as an ErrInvalid.
func (c DoubleBarrierConfig) Validate() error {
	if c.Size < 1 {
		return fmt.Errorf("%w: Size is %d; a double barrier has at least 1 member", ErrInvalid, c.Size)
	}
	return nil
}

// Passage is a member that has entered. Done closes when its znode is gone (its
// session was lost, or another hand deleted it, which is always noticed) and
// when it begins to leave.
type Passage interface {
	Grant

	// Members are the znodes of all who entered together, this one's included, in
	// the order in which they came. They tell nothing about who is still there.
	Members() []string

	// Leave ends the member's part and waits until all who entered with it have
	// ended theirs: left, or lost their sessions. It is the text's procedure: the
	// lowest member left waits for the highest, all others delete their own node
	// and wait for the lowest, so that a deletion wakes one member, and the last
	// one all. It returns nil when no member of its generation is left.
	//
	// If ctx ends first it returns ctx's error, and the own znode is deleted all
	// the same, in the background if it has to be, so that the others do not wait
	// for it. It may be called again, by one goroutine at a time, and then waits
	// again for the others. If the own znode was removed by another hand before,
	// it waits for the others too, and then returns an error that matches
	// ErrRemoved. If the session is lost, the error matches ErrNotHeld and
	// ErrSessionLost; the others do not wait for this one beyond the session's
	// timeout.
	Leave(ctx context.Context) error
}
