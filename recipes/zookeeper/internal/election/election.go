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

const (
	candidateMarker = "n_"
	acksName        = "acks"
)

// New returns the election at path.
func New(lines *line.Lines, path string, cfg recipes.ElectionConfig) (recipes.Election, error) {
	l, err := lines.At("election", path, cfg.Strategy, candidateMarker)
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
	grant, err := e.line.Enter(ctx, line.Request{Data: proposal, Joined: e.cfg.Joined})
	if err != nil {
		return nil, e.failed(err)
	}
	return &leadership{Grant: grant, session: e.line.Session, ack: ackPath(grant.Znode(), grant.Token())}, nil
}

func (e *election) Candidates(ctx context.Context) ([]recipes.Contender, error) {
	all, err := Candidates.At(ctx, e.line.Session, e.line.Path)
	if err != nil {
		return nil, e.failed(err)
	}
	return all, nil
}

// Candidates reads the candidates of an election. The first one holds.
var Candidates = line.Reader{Read: func(ctx context.Context, s *session.Session, p line.Parent) ([]recipes.Contender, error) {
	return p.InLine(ctx, s, recipes.KindElection, 1, candidateMarker)
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
	leader := leaderOf(path, entries[0], node)
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
func leaderOf(path string, first line.Entry, node session.Node) recipes.Leader {
	c := first.Contender(recipes.KindElection, path, node)
	c.Holds = true
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
	if strings.HasPrefix(name, candidateMarker) {
		name = fmt.Sprintf("%s-%x", name, int64(token))
	}
	return gopath.Join(gopath.Dir(candidate), acksName, name)
}
