package zookeeper

import (
	"context"
	"fmt"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/line"
)

// lockMarker ends the fixed part of a lock contender's name, in Curator's
// InterProcessMutex and in go-zookeeper's Lock as here.
const lockMarker = "lock-"

type lock struct {
	line *line.Line
	cfg  recipes.LockConfig
}

func (l *lock) Path() string { return l.line.Path }

func (l *lock) Acquire(ctx context.Context) (recipes.Hold, error) { return l.enter(ctx, false) }

func (l *lock) TryAcquire(ctx context.Context) (recipes.Hold, error) { return l.enter(ctx, true) }

func (l *lock) enter(ctx context.Context, try bool) (recipes.Hold, error) {
	grant, err := l.line.Enter(ctx, line.Request{Data: l.cfg.Data, Try: try, Joined: l.cfg.Joined})
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", l.line.Path, err)
	}
	return grant, nil
}

func (l *lock) Contenders(ctx context.Context) ([]recipes.Contender, error) {
	contenders, err := readLine(ctx, l.line.Session, l.line.Path, recipes.KindLock)
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", l.line.Path, err)
	}
	return contenders, nil
}
