package recipes

import "context"

// Election chooses one leader among those who campaign at a path: the one who
// has campaigned longest. It is a name and a way of waiting, and holds no state. Any
// number of goroutines may use it.
//
// A leader cannot name its successor, for the reason that Lock gives: a candidate
// that finds itself first considers itself elected and asks nobody. Where leaders
// have to be named, campaign with a PriorityLock and use PriorityHold.HandOff.
//
// Source: ZooKeeper Recipes, "Leader Election". Candidates are ephemeral
// sequential children of the path, named _c_<guid>-n_<sequence>. The guid comes
// first, as for locks (the text writes guid-n_): one rule then finds a znode again
// whose creation was not confirmed. By Handoff, candidates are named n_<sequence>.
//
// The text has "a separate znode to acknowledge that the leader has executed the
// leader procedure". Here it is an ephemeral znode below PATH/acks, named as the
// leader's. By Handoff it is named n_<sequence>-<token in hex>, because a name
// without a guid can come back.
type Election interface {
	// Path is the path the election was made with.
	Path() string

	// Campaign joins the candidates and waits until it is elected. The proposal is
	// stored in the candidate's znode, and Leader, Observe and Candidates show it.
	// The errors are those of Lock.Acquire.
	Campaign(ctx context.Context, proposal []byte) (Leadership, error)

	// Leader returns the present leader, or an error that matches ErrNoLeader. The
	// answer may be outdated on arrival. The leader may not know yet that it leads:
	// see Leader.Acknowledged.
	Leader(ctx context.Context) (Leader, error)

	// Acknowledged waits until a leader has acknowledged, and returns that leader.
	Acknowledged(ctx context.Context) (Leader, error)

	// Observe returns a channel that first gives the present leader and then every
	// change: another leader, its acknowledgement, or a Leader that is None when
	// nobody campaigns any more. A slow reader may miss states in between but never
	// the latest.
	//
	// A process that was started again may see its own candidacy of before, with its
	// own proposal: that lasts until the earlier session has expired. To know it,
	// compare Leader.SessionID with Session.ID: a candidacy of this session has the
	// same.
	//
	// The channel is closed when ctx ends, when the session is lost (Session.Err
	// tells), or when the servers deny access. Observe returns an error only if the
	// first look fails.
	Observe(ctx context.Context) (<-chan Leader, error)

	// Candidates returns who campaigns, in order. The first one leads. It costs one
	// read for the line and one for each candidate.
	Candidates(ctx context.Context) ([]Contender, error)
}

// ElectionConfig says how to campaign. The zero value is good.
type ElectionConfig struct {
	// Strategy is how to wait; "" is DefaultStrategy.
	Strategy Strategy

	// Dialect says who stands in the same line; "" is DefaultDialect. Curator shares
	// it with LeaderLatch, whose ids are the proposals, and Kazoo with kazoo's
	// Election. For Curator's LeaderSelector use a Lock. In both, Acknowledge fails
	// with ErrInvalid and Acknowledged never returns a leader: the other library
	// would take the znode acks for a candidate.
	Dialect Dialect

	// Joined, if not nil, is called once for each Campaign that has joined the
	// line, on the terms of LockConfig.Joined.
	Joined func(Place)
}

// Leadership is an election won. Done closes when it can no longer be relied on.
type Leadership interface {
	Grant

	// Acknowledge records that the leader has executed the leader procedure. It
	// creates the acknowledgement znode with data, in one transaction with a check
	// that the leadership stands. The znode goes with the leadership. A second call
	// replaces the data. The errors are those of Write.
	Acknowledge(ctx context.Context, data []byte) error

	// Resign gives up the leadership and its acknowledgement, on the terms of
	// Hold.Release.
	Resign(ctx context.Context) error
}

// Leader is the first in line of an election. The zero Leader is None.
//
// "Being first in line does not imply that the creator of the znode is aware that
// it is the leader." Acknowledged implies it.
type Leader struct {
	Contender
	// Acknowledged reports whether the leader has acknowledged.
	Acknowledged bool
	// Acknowledgement is the data that it acknowledged with.
	Acknowledgement []byte
}

// None reports that nobody leads.
func (l Leader) None() bool { return l.Znode == "" }
