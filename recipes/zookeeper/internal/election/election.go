package election

import (
	"context"
	"errors"
	"fmt"
	gopath "path"
	"strings"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/line"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/znode"
)

const acksName = "acks"

// markers are those of an election. kazoo's is a lock.
var markers = line.Spoken{
	recipes.ZooKeeper: {line.Candidate},
	recipes.Curator:   {line.CuratorLatch},
	recipes.Kazoo:     {line.KazooLock},
}

// New returns the election at path.
func New(lines *line.Lines, path string, cfg recipes.ElectionConfig) (recipes.Election, error) {
	l, err := lines.At("election", path, cfg.Strategy, cfg.Dialect, markers)
	if err != nil {
		return nil, err
	}
	return &election{line: l, cfg: cfg}, nil
}

type election struct {
	line *line.Line
	cfg  recipes.ElectionConfig
}

func (e *election) Path() string { return e.line.Path }

func (e *election) Campaign(ctx context.Context, proposal []byte) (recipes.Leadership, error) {
	if err := e.line.Stores(proposal); err != nil {
		return nil, e.failed(err)
	}
	hold, err := e.line.Enter(ctx, line.Options{Data: proposal, Joined: e.cfg.Joined})
	if err != nil {
		return nil, e.failed(err)
	}
	return e.led(hold), nil
}

func (e *election) led(hold *line.Hold) *leadership {
	l := &leadership{Hold: hold, session: e.line.Session}
	if e.line.Dialect == recipes.ZooKeeper {
		l.ack = ackPath(hold.Znode(), hold.Token())
	}
	return l
}

// Resume is line.Line.Resume. The leader's acknowledgement stands.
func (e *election) Resume(ctx context.Context, znode string, token recipes.Token) (recipes.Leadership, error) {
	hold, err := e.line.Resume(ctx, znode, token)
	if err != nil {
		return nil, e.failed(err)
	}
	l := e.led(hold)
	if l.ack != "" { // deleting it does no harm where it was not made
		l.Attach(l.ack)
		l.session.MarkResumed(l.ack)
	}
	return l, nil
}

// ResumeWaiting is line.Line.ResumeWaiting.
func (e *election) ResumeWaiting(ctx context.Context, znode string, try bool) (recipes.Leadership, error) {
	hold, err := e.line.ResumeWaiting(ctx, znode, line.Options{Try: try, Joined: e.cfg.Joined})
	if err != nil {
		return nil, e.failed(err)
	}
	return e.led(hold), nil
}

func (e *election) Candidates(ctx context.Context) ([]recipes.Contender, error) {
	all, err := Candidates.At(ctx, e.line.Session, e.line.Path, e.line.Dialect)
	if err != nil {
		return nil, e.failed(err)
	}
	return all, nil
}

// Candidates reads the candidates of an election. The first one holds.
var Candidates = line.Reader{Spoken: markers, Read: func(ctx context.Context, s *session.Session, p line.Parent, d recipes.Dialect) ([]recipes.Contender, error) {
	return p.InLine(ctx, s, recipes.KindElection, 1, markers[d])
}}

func (e *election) Leader(ctx context.Context) (recipes.Leader, error) {
	for {
		leader, err := e.read(ctx)
		if errors.Is(err, znode.ErrReadAgain) {
			continue
		}
		if err != nil {
			return recipes.Leader{}, e.failed(err)
		}
		if leader.None() {
			return recipes.Leader{}, e.failed(recipes.ErrNoLeader)
		}
		return leader, nil
	}
}

func (e *election) failed(err error) error {
	return fmt.Errorf("election %s: %w", e.line.Path, err)
}

// read reads the leader and its acknowledgement without a watch.
func (e *election) read(ctx context.Context) (recipes.Leader, error) {
	entries, err := e.line.Entries(ctx)
	if err != nil || len(entries) == 0 {
		return recipes.Leader{}, err
	}
	s, path := e.line.Session, gopath.Join(e.line.Path, entries[0].Name)
	node, err := s.Get(ctx, path)
	if errors.Is(err, recipes.ErrNoNode) {
		return recipes.Leader{}, znode.ErrReadAgain
	}
	if err != nil {
		return recipes.Leader{}, err
	}
	leader := e.leaderOf(path, entries[0], node)
	ack, err := s.Get(ctx, ackPath(path, leader.Token))
	switch {
	case err == nil:
		leader.Acknowledged, leader.Acknowledgement = true, ack.Data
	case !errors.Is(err, recipes.ErrNoNode):
		return recipes.Leader{}, err
	}
	return leader, nil
}

// leaderOf returns the first in line as the leader.
func (e *election) leaderOf(path string, first line.Entry, node session.Node) recipes.Leader {
	c := first.Contender(recipes.KindElection, path, node)
	c.Holds, c.Dialect = true, e.line.Dialect
	return recipes.Leader{Contender: c}
}

// ackPath is where the candidate of that znode acknowledges: a znode of the same
// name, which is therefore known from the candidate's, and used once. It has a
// parent of its own, so that an observer can watch the parent's list. A watch on
// each acknowledgement that may never come would stay at the server for every leader
// that was observed.
//
// A name that is only marker and number may be used twice, so the token is added.
func ackPath(candidate string, token recipes.Token) string {
	name := gopath.Base(candidate)
	if strings.HasPrefix(name, line.Candidate) {
		name = fmt.Sprintf("%s-%x", name, int64(token))
	}
	return gopath.Join(gopath.Dir(candidate), acksName, name)
}
