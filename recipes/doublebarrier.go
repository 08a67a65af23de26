package recipes

import (
	"context"
	"fmt"
)

// DoubleBarrier has a fixed number of members begin a computation together and end
// it together, again and again. It is a name and a number and holds no state.
// Any number of goroutines may use it; each Enter is another member.
//
// Source: ZooKeeper Recipes, "Double Barriers". Members are ephemeral children of
// the path, named _c_<guid>-member-<sequence>. The text's ready node is the child
// ready, which is not a member. Children of other names are ignored, but not members of
// another dialect. Enter fails with ErrForeign where it finds one, before it makes a
// member. What follows is for the default dialect: see DoubleBarrierConfig.Dialect.
//
// The text's barrier can be used once: its ready node stays, and would let the
// next member through alone. Here the data of ready name the members that it
// admits, one name a line. The transaction that writes ready checks that each of them
// is there. So a member passes if and only if it was one of Size members that were
// there at the same moment.
//
// A generation is the members that one ready names. The next generation is formed
// when no member of the last one is left, from those that have waited longest.
// Members beyond Size wait for it. Nothing that happens on entering can release
// members that leave.
//
// All members must use the same Size. It is not compared.
type DoubleBarrier interface {
	// Path is the path the barrier was made with.
	Path() string

	// Size is the number of members.
	Size() int

	// Enter makes a member, and waits until it is one of Size members that enter
	// together. The data are for people who look at the znodes.
	//
	// If ctx ends first, Enter returns ctx's error and removes the member in the
	// background, so it may still be counted for a moment. If the session is lost,
	// the error matches ErrSessionLost. If another client deletes the member's
	// znode, it matches ErrRemoved. A lost connection is not an error.
	//
	// After an error the member has not entered. Others may still enter with it, if
	// it had been counted before it left. To them it is a member that has failed
	// after entering.
	Enter(ctx context.Context, data []byte) (Passage, error)
}

// DoubleBarrierConfig says how many enter together.
type DoubleBarrierConfig struct {
	// Size is the number of members that have to be there, at least 1. One
	// transaction names all of them, so SessionConfig.MaxPacket bounds Size: to
	// about 1500 at ZooKeeper's default.
	Size int

	// Dialect says with whose members ours enter; "" is DefaultDialect. Curator is
	// Curator's DistributedDoubleBarrier, Kazoo is kazoo's DoubleBarrier. In both the
	// member is a GUID, and counts as one more member. It is made when no round is on.
	//
	// A member of ours enters when Size members are there at one moment, or when ready is
	// created after its znode. It does not leave before all that it entered with begin to,
	// or die. Members of the two libraries do not promise as much, and ours cannot change
	// that:
	//
	//   - When all members of a round die, their ready stays. Then Curator's next member
	//     enters alone, and kazoo's when one is missing. Ours deletes such a ready if it
	//     comes first. The ready that ours makes ends with its session. A member that
	//     has not looked by then waits on.
	//   - A member of theirs that has not counted yet waits for ever if others leave before.
	//     So nobody should leave before all have entered.
	//   - A member of Curator's that still leaves waits for those that have entered again,
	//     and these wait for it. So nobody should enter again before all have left.
	//   - kazoo's members that leave look like members that wait. A process in the place
	//     of a dead one should enter when the others have left.
	//   - A member of ours that loses its connection while kazoo's enter and leave waits
	//     for their next round. They wait for it too, until it gives up.
	//   - More than Size members are not held back, and one that gives up or dies after it
	//     was counted is not missed.
	Dialect Dialect
}

// Validate reports what is wrong with the configuration, as an ErrInvalid.
func (c DoubleBarrierConfig) Validate() error {
	if c.Size < 1 {
		return fmt.Errorf("%w: Size is %d; a double barrier has at least 1 member", ErrInvalid, c.Size)
	}
	_, err := c.Dialect.Normalize()
	return err
}

// Passage is a member that has entered. Done closes when its znode is gone: its
// session was lost, or another client deleted the znode, which is always noticed.
// Done also closes when the member begins to leave.
type Passage interface {
	Grant

	// Members are the znodes of all who entered together, this one's included, in
	// the order in which they came. They do not say who is still there. In another
	// dialect they are those that were there when this one entered, by name.
	Members() []string

	// Leave ends the member's part and waits until all who entered with it have
	// ended theirs: left, or lost their sessions. It returns nil when no member of
	// the generation is left. It is the text's procedure: the lowest member that is
	// left waits for the highest, and all others delete their znodes and wait for
	// the lowest. So a deletion wakes one member, and the last deletion wakes all.
	//
	// If ctx ends first, Leave returns ctx's error. The member's znode is deleted
	// all the same, in the background if need be, so the others do not wait for it.
	// If the server refuses to delete the znode, Leave says so, and can be tried again.
	// Leave may be called again, by one goroutine at a time, and then waits again.
	//
	// If another client had deleted the member's znode, Leave waits for the others
	// too, and then returns an error that matches ErrRemoved. If the session is
	// lost, the error matches ErrNotHeld and ErrSessionLost. The others do not wait
	// for this member beyond the session's timeout.
	Leave(ctx context.Context) error
}
