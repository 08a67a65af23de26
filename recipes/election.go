package recipes

import "context"

// Election chooses one leader among those who campaign at a path: the one who
// has been campaigning longest. It is a name and a way of waiting, holds no
// state, and may be used by any number of goroutines.
//
// A leader cannot name its successor, for the reason that Lock gives: the
// candidate that finds itself first takes itself for elected without asking
// anybody. Where leaders have to be named, campaign with a PriorityLock and use
// PriorityHold.HandOff.
//
// Source: ZooKeeper Recipes, "Leader Election". Candidates are ephemeral
// sequential children of the path named _c_<guid>-n_<sequence>; the guid is put
// first, as for locks (the text writes guid-n_), so that one rule finds a node
// again whose creation was not confirmed. The text's acknowledgement, "a
// separate znode to acknowledge that the leader has executed the leader
// procedure", is an ephemeral node of the leader's own name below PATH/acks.
// By Handoff, candidates are named n_<sequence>, and the acknowledgement of
// one n_<sequence>-<token in hex>, because such a name can come back.
type Election interface {
	// Path is the path the election was made with.
	Path() string

	// Campaign stands for election with a proposal (stored in the candidate's
	// znode, shown by Leader, Observe and Candidates) and waits until elected.
	// Its errors are those of Lock.Acquire.
	Campaign(ctx context.Context, proposal []byte) (Leadership, error)

	// Leader returns the present leader, or an error that matches ErrNoLeader.
	// It may be outdated on arrival. "Being first in line does not imply that
	// the creator of the znode is aware that it is the leader": see
	// Leader.Acknowledged.
	Leader(ctx context.Context) (Leader, error)

	// Acknowledged waits until there is a leader that has acknowledged, and
	// returns it.
	Acknowledged(ctx context.Context) (Leader, error)

	// Observe returns a channel that first gives the present leader and then
	// every change: another leader, its acknowledgement, or a Leader that is
	// None when nobody campaigns any more. A slow reader may miss states in
	// between but never the latest. The channel is closed when ctx ends, the
	// session is lost (Session.Err tells), or the servers refuse to be read. An
	// error is returned only if the first look fails.
	Observe(ctx context.Context) (<-chan Leader, error)

	// Candidates returns who campaigns, in order; the first one leads. It
	// costs one read for the line and one for each candidate.
	Candidates(ctx context.Context) ([]Contender, error)
}

// ElectionConfig says how to stand for election. The zero value is good.
type ElectionConfig struct {
	// Strategy is how to wait; "" is DefaultStrategy.
	Strategy Strategy

	// Joined, if not nil, is called once for each Campaign that has joined the
	// line, on the terms of LockConfig.Joined.
	Joined func(Place)
}

// Leadership is an election won. Done closes when it can no longer be relied on.
type Leadership interface {
	Grant

	// Acknowledge records that the leader has executed the leader procedure:
	// it creates the acknowledgement znode with data, in one transaction with
	// a check that the leadership stands. The znode goes with the leadership.
	// A second call replaces the data. Errors are those of Write.
	Acknowledge(ctx context.Context, data []byte) error

	// Resign gives the leadership up, and its acknowledgement with it, on the
	// terms of Hold.Release.
	Resign(ctx context.Context) error
}

// Leader is the first in line of an election. The zero Leader is None.
type Leader struct {
	Contender
	// Acknowledged reports whether the leader has acknowledged.
	Acknowledged bool
	// Acknowledgement is the data that it acknowledged with.
	Acknowledgement []byte
}

// None reports that nobody leads.
func (l Leader) None() bool { return l.Znode == "" }
