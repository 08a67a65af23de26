package recipes

import "context"

// Election elects one leader among the candidates of a path: the one that has campaigned
// longest. It is only a path and a configuration, without state of its own, and is safe for
// concurrent use.
//
// A leader cannot choose its successor, because a candidate that is first is elected without
// asking. To choose leaders, use a PriorityLock with PriorityHold.HandOff.
//
// Source: ZooKeeper Recipes, "Leader Election". Candidates are ephemeral sequential children
// of the path, named _c_<guid>-n_<sequence>. The guid comes first, as for locks (the text
// writes guid-n_), so that one rule finds a znode again after an unconfirmed create. By
// Handoff, candidates are named n_<sequence>.
//
// The text has "a separate znode to acknowledge that the leader has executed the leader
// procedure". Here it is an ephemeral znode below PATH/acks, with the name of the leader's
// znode. By Handoff it is named n_<sequence>-<token in hex>, because a name without a guid
// can be used again.
type Election interface {
	// Path is the path of the election.
	Path() string

	// Campaign joins the candidates and waits until it is elected. The proposal is stored in
	// the candidate's znode; Leader, Observe and Candidates return it. The errors are those
	// of Lock.Acquire.
	Campaign(ctx context.Context, proposal []byte) (Leadership, error)

	// Leader returns the current leader, or an error that matches ErrNoLeader. The answer
	// may be outdated when it arrives. The leader may not have noticed its election yet: see
	// Leader.Acknowledged.
	Leader(ctx context.Context) (Leader, error)

	// Acknowledged waits until a leader has acknowledged, and returns that leader.
	Acknowledged(ctx context.Context) (Leader, error)

	// Observe returns a channel that first receives the current leader and then every
	// change: another leader, its acknowledgement, or a Leader that is None when there are no
	// candidates. A slow reader may miss states in between but never the latest.
	//
	// A restarted process can see its earlier candidacy, with its own proposal, until the
	// earlier session expires. Compare Leader.SessionID with Session.ID to distinguish them.
	//
	// The channel is closed when ctx ends, when the session is lost (see Session.Err), or
	// when the servers deny access. Observe returns an error only if the first read fails.
	Observe(ctx context.Context) (<-chan Leader, error)

	// Candidates returns the candidates, in order. The first one leads. It costs one
	// listing, and one read for each candidate.
	Candidates(ctx context.Context) ([]Contender, error)
}

// ElectionConfig configures an Election. The zero value is the default.
type ElectionConfig struct {
	// Strategy is how to wait; "" is Handoff.
	Strategy Strategy

	// Dialect selects the libraries that share the wait queue; "" is ZooKeeper. Curator
	// shares it with LeaderLatch, whose ids are the proposals, and Kazoo with kazoo's
	// Election. For Curator's LeaderSelector use a Lock. In both dialects Acknowledge fails
	// with ErrInvalid and Acknowledged never returns a leader, because the other library
	// would count the znode acks as a candidate.
	Dialect Dialect

	// EndsWithProcess ends the leadership when this process dies, because it needs the process's
	// code. Otherwise the process's children can keep the session, and all that it holds, for
	// longer: see host.Config.Lifetime. Without a plugin, a session always ends with its
	// process.
	EndsWithProcess bool

	// Joined, if not nil, is called once for each Campaign that has joined, as
	// LockConfig.Joined is.
	Joined func(Place)
}

// Leadership is the grant of an Election. Done closes when it must no longer be relied on.
type Leadership interface {
	Grant

	// Acknowledge records that the leader has executed the leader procedure. It creates the
	// acknowledgement znode with data, in one transaction with a check that the leadership
	// is held. The znode is deleted with the leadership. A second call replaces the data.
	// The errors are those of Write.
	Acknowledge(ctx context.Context, data []byte) error

	// Resign gives up the leadership and its acknowledgement. Its errors are those of
	// Hold.Release.
	Resign(ctx context.Context) error
}

// Leader is the first candidate of an election. The zero Leader is None.
//
// "Being first in line does not imply that the creator of the znode is aware that
// it is the leader." Acknowledged implies it.
type Leader struct {
	Contender
	// Acknowledged reports whether the leader has acknowledged.
	Acknowledged bool
	// Acknowledgement is the data of its Acknowledge.
	Acknowledgement []byte
}

// None reports that there is no leader.
func (l Leader) None() bool { return l.Znode == "" }
