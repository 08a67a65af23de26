package recipes

import (
	"context"
	"fmt"
)

// DoubleBarrier lets a fixed number of members start a computation together and end it
// together, again and again. It is only a path and a number, without state of its own, and is
// safe for concurrent use. Each Enter is another member.
//
// Source: ZooKeeper Recipes, "Double Barriers". Members are ephemeral children of the path,
// named _c_<guid>-member-<sequence>. The text's ready node is the child ready, which is not a
// member. Other children are ignored. But if there is a member of another dialect, Enter fails
// with ErrForeign before it creates a member. The following is for the default dialect: see
// DoubleBarrierConfig.Dialect.
//
// The text's barrier can be used once: its ready node remains and would admit the next member
// alone. Here the data of ready lists the members that it admits, one name per line. The
// transaction that writes ready checks that each of them exists. So a member passes if and
// only if it was one of Size members that existed at the same time.
//
// A round is the members that one ready lists. The next round begins when all members of the
// last one have left, with the members that have waited longest. Members beyond Size wait for
// it. A member that enters never releases members that leave.
//
// All members must use the same Size. The library does not compare it.
type DoubleBarrier interface {
	// Path is the path of the barrier.
	Path() string

	// Size is the number of members.
	Size() int

	// Enter creates a member, and waits until it is one of Size members that enter together.
	// The data is for people who read the znodes.
	//
	// If ctx ends first, Enter returns ctx's error and deletes the member in the background,
	// so it may still be counted for a moment. If the session is lost, the error matches
	// ErrSessionLost. If another client deletes the member's znode, it matches ErrRemoved. A
	// lost connection is not an error.
	//
	// After an error the member has not entered. If it was counted before it was deleted,
	// others may still enter with it. To them it is a member that failed after it entered.
	Enter(ctx context.Context, data []byte) (Passage, error)
}

// DoubleBarrierConfig configures a DoubleBarrier. Size is required.
type DoubleBarrierConfig struct {
	// Size is the number of members that enter together, at least 1. One transaction lists
	// all of them, so SessionConfig.MaxPacket bounds Size: to about 1500 at ZooKeeper's
	// default.
	Size int

	// Dialect selects the library whose members enter together with ours; "" is
	// ZooKeeper. Curator is Curator's DistributedDoubleBarrier, Kazoo is kazoo's
	// DoubleBarrier. In both a member is a GUID. It is created when no round is in progress.
	//
	// Our member enters when Size members exist at one time, or when ready is created after
	// its znode. It leaves only after all members that it entered with have begun to leave,
	// or died. Members of the two libraries guarantee less, and ours cannot change that:
	//
	//   - When all members of a round die, their ready remains. Then Curator's next member
	//     enters alone, and kazoo's members when one of them is missing. If ours comes first,
	//     it deletes such a ready. The ready that ours creates is deleted with its session. A
	//     member that has not read it by then keeps waiting.
	//   - A member of those libraries that has not counted yet waits for ever if others leave
	//     first. So no member should leave before all have entered.
	//   - A member of Curator's that is still leaving waits for members that have entered
	//     again, and they wait for it. So no member should enter again before all have left.
	//   - kazoo's members that leave look like members that wait. A process that replaces a
	//     dead one should enter when the others have left.
	//   - Our member that loses its connection while kazoo's enter and leave waits for
	//     their next round. They wait for it too, until it gives up.
	//   - More than Size members are not held back, and one that gives up or dies after it
	//     was counted is not noticed.
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

// Passage is a member that has entered. Done closes when its session is lost, when another
// client deletes its znode, which is always noticed, or when the member begins to leave.
type Passage interface {
	Grant

	// Members are the znodes of all members that entered together, this one included, in the
	// order in which they joined. Some may have left since. In another dialect they are the
	// members that existed when this one entered, ordered by name.
	Members() []string

	// Leave leaves the barrier and waits until all members that entered together have left
	// or lost their sessions. Then it returns nil. It is the text's procedure: the lowest
	// remaining member waits for the highest, and all others delete their znodes and wait for
	// the lowest. So a deletion wakes one member, and the last deletion wakes all.
	//
	// If ctx ends first, Leave returns ctx's error. The member's znode is still deleted, if
	// necessary in the background, so the others do not wait for it. If the server refuses
	// the deletion, Leave returns that error. Leave may be called again, by one goroutine at
	// a time, and then waits again.
	//
	// If another client had deleted the member's znode, Leave also waits for the others, and
	// then returns an error that matches ErrRemoved. If the session is lost, the error
	// matches ErrNotHeld and ErrSessionLost. The others wait for this member for at most the
	// session timeout.
	Leave(ctx context.Context) error
}
