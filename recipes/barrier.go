package recipes

import (
	"context"
	"fmt"
)

// Barrier blocks all waiters until it is removed. It is only a path, without state of its
// own, and is safe for concurrent use.
//
// Source: ZooKeeper Recipes, "Barriers": "The barrier is in place if the barrier
// node exists." The node is the path itself. It is persistent: it outlives its creator until
// a client removes it. The text does not say how a barrier is set and removed. Set and
// Remove define the result of a lost reply.
type Barrier interface {
	// Path is the path of the barrier node.
	Path() string

	// Set creates the barrier and its missing parents. The data tells people why they
	// wait. If the barrier exists, Set returns nil and leaves its data. When Set returns
	// nil, the barrier existed at some time during the call.
	//
	// After a lost reply Set reads the znode. If the barrier does not exist, and a sibling
	// was created or deleted since, it may have been set and removed again. Then the error
	// matches ErrUnknownOutcome, and Set does not retry: that could restore a barrier that
	// another client has removed. The error also matches ErrUnknownOutcome if ctx ends, or
	// the session is lost, after the request was sent.
	Set(ctx context.Context, data []byte) error

	// Remove deletes the barrier, so that all waiters pass. If there is no barrier, it
	// returns nil. Remove deletes at most one barrier: after a lost reply it does not delete
	// one that was set since.
	//
	// The error matches ErrUnknownOutcome if the barrier was set between Remove's first
	// read and a request whose reply was lost. The same applies if ctx ends, or the session
	// is lost, after the request was sent.
	Remove(ctx context.Context) error

	// Wait returns when the barrier does not exist. As in the text, it reads the node with
	// a watch, waits for the watch, and reads again. It sets no watch on a barrier that does
	// not exist.
	//
	// If ctx ends first, Wait returns ctx's error. If the session is lost, the error matches
	// ErrSessionLost. If the session may not read the node, the error matches
	// ErrAccessDenied, because the servers would not notify it of the removal. A lost
	// connection is not an error: Wait reads again after the reconnect.
	//
	// If the barrier is removed, and set again before Wait reads, Wait keeps waiting. Wait
	// reads from the session's server, which may lag behind a Set that has just returned in
	// another session. So a process can pass although the barrier was set before it was
	// asked to wait.
	Wait(ctx context.Context) error

	// IsSet reports whether the barrier exists. It costs one read. The answer may be
	// outdated when it arrives.
	IsSet(ctx context.Context) (bool, error)
}

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
	//     it deletes that ready znode. The one that ours creates is deleted with its session. A
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
