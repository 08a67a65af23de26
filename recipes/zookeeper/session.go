package zookeeper

import (
	"context"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/line"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

// Open opens a ZooKeeper session. It is a recipes.Opener.
func Open(ctx context.Context, cfg recipes.SessionConfig) (recipes.Session, error) {
	return OpenWith(nil)(ctx, cfg)
}

// OpenWith returns an Opener that reaches servers with dial, for proxies and
// tests.
func OpenWith(dial session.DialFunc) recipes.Opener {
	return func(ctx context.Context, cfg recipes.SessionConfig) (recipes.Session, error) {
		s, err := session.Open(ctx, cfg, dial)
		if err != nil {
			return nil, err
		}
		return zkSession{Session: s, listings: new(listings), lines: line.Of(s)}, nil
	}
}

// zkSession adds the recipes to a session.
type zkSession struct {
	*session.Session
	listings *listings   // of queues
	lines    *line.Lines // of locks and elections
}

func (s zkSession) Stats(context.Context) (recipes.Stats, error) {
	return s.Session.Counters(), nil
}

func (s zkSession) Lock(path string, cfg recipes.LockConfig) (recipes.Lock, error) {
	l, err := s.lines.At("lock", path, cfg.Strategy, lockMarker)
	if err != nil {
		return nil, err
	}
	return &lock{line: l, cfg: cfg}, nil
}

func (s zkSession) Election(path string, cfg recipes.ElectionConfig) (recipes.Election, error) {
	l, err := s.lines.At("election", path, cfg.Strategy, candidateMarker)
	if err != nil {
		return nil, err
	}
	return &election{line: l, cfg: cfg}, nil
}
