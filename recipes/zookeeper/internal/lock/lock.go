package lock

import (
	"context"
	"fmt"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/line"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

// markers are those of a lock. Curator's are the text's.
var markers = line.Spoken{
	recipes.ZooKeeper: {line.Lock},
	recipes.Curator:   {line.Lock},
	recipes.Kazoo:     {line.KazooLock},
}

// New returns the lock at path.
func New(lines *line.Lines, path string, cfg recipes.LockConfig) (recipes.Lock, error) {
	l, err := lines.At("lock", path, cfg.Strategy, cfg.Dialect, markers)
	if err != nil {
		return nil, err
	}
	if err := l.Stores(cfg.Data); err != nil {
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return &lock{line: l, cfg: cfg}, nil
}

type lock struct {
	line *line.Line
	cfg  recipes.LockConfig
}

func (l *lock) Path() string { return l.line.Path }

func (l *lock) Acquire(ctx context.Context) (recipes.Hold, error) { return l.enter(ctx, false) }

func (l *lock) TryAcquire(ctx context.Context) (recipes.Hold, error) { return l.enter(ctx, true) }

func (l *lock) enter(ctx context.Context, try bool) (recipes.Hold, error) {
	hold, err := l.line.Enter(ctx, line.Options{Data: l.cfg.Data, Try: try, Joined: l.cfg.Joined})
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", l.line.Path, err)
	}
	return hold, nil
}

// Resume is line.Line.Resume.
func (l *lock) Resume(ctx context.Context, znode string, token recipes.Token) (recipes.Hold, error) {
	hold, err := l.line.Resume(ctx, znode, token)
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", l.line.Path, err)
	}
	return hold, nil
}

// ResumeWaiting is line.Line.ResumeWaiting.
func (l *lock) ResumeWaiting(ctx context.Context, znode string, try bool) (recipes.Hold, error) {
	hold, err := l.line.ResumeWaiting(ctx, znode, line.Options{Try: try, Joined: l.cfg.Joined})
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", l.line.Path, err)
	}
	return hold, nil
}

func (l *lock) Contenders(ctx context.Context) ([]recipes.Contender, error) {
	all, err := Contenders.At(ctx, l.line.Session, l.line.Path, l.line.Dialect)
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", l.line.Path, err)
	}
	return all, nil
}

// Contenders reads the contenders of a lock. The first one holds.
var Contenders = line.Reader{Spoken: markers, Read: func(ctx context.Context, s *session.Session, p line.Parent, d recipes.Dialect) ([]recipes.Contender, error) {
	return p.InLine(ctx, s, recipes.KindLock, 1, markers[d])
}}
