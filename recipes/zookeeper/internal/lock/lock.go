package lock

import (
	"context"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/line"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

// markers are those of a lock. Curator uses the text's.
var markers = line.Spoken{
	recipes.ZooKeeper: {line.Lock},
	recipes.Curator:   {line.Lock},
	recipes.Kazoo:     {line.KazooLock},
}

func New(lines *line.Lines, path string, cfg recipes.LockConfig) (recipes.Lock, error) {
	l, err := lines.At("lock", path, cfg.Strategy, cfg.Dialect, markers)
	if err != nil {
		return nil, err
	}
	made, err := line.NewRecipe(l, "lock", Contenders, hold, l.Stores(cfg.Data))
	if err != nil {
		return nil, err
	}
	made.Options = line.Options{Data: cfg.Data, Joined: cfg.Joined}
	return &lock{made}, nil
}

type lock struct{ line.Recipe[recipes.Hold] }

func hold(h *line.Hold) recipes.Hold { return h }

func (l *lock) Acquire(ctx context.Context) (recipes.Hold, error) {
	return l.Enter(ctx, l.Trying(false))
}

func (l *lock) TryAcquire(ctx context.Context) (recipes.Hold, error) {
	return l.Enter(ctx, l.Trying(true))
}

// Contenders reads the contenders of a lock. The first one holds it.
var Contenders = line.Reader{Spoken: markers, Read: func(ctx context.Context, s *session.Session, p line.Parent, d recipes.Dialect) ([]recipes.Contender, error) {
	return p.InLine(ctx, s, recipes.KindLock, 1, markers[d])
}}
