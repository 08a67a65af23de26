package recipes

import "time"

// Contender is one place in a line: a znode that somebody created to take part
// in a lock or an election.
type Contender struct {
	// Znode is the path of the contender's znode, below the session's chroot.
	Znode string
	// Sequence is the number that ZooKeeper gave the znode. It wraps from
	// 2147483647 to -2147483648; compare contenders by their place in the
	// slice that you got, not by this.
	Sequence int32
	// Token is the czxid of the znode: the fencing token that this contender
	// has, or will have, when it is granted.
	Token Token
	// SessionID is the ZooKeeper session that owns the znode.
	SessionID int64
	// Since is when the znode was created, by the server's clock.
	Since time.Time
	// Data is what the contender stored: LockConfig.Data, or the proposal
	// given to Campaign.
	Data []byte
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
// not listed the line. Contenders lists it for whoever wants to know.
const UnknownPosition = -1
