package client

import (
	"context"

	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

type lock struct {
	s    *session
	path string
	cfg  recipes.LockConfig

	dialect string // as wire.ToDialect has it
}

type hold struct{ *grant }

func (h hold) Release(ctx context.Context) error { return h.giveBack(ctx) }

func (s *session) Lock(path string, cfg recipes.LockConfig) (recipes.Lock, error) {
	strategy, err := check(path, cfg.Strategy)
	if err != nil {
		return nil, err
	}
	cfg.Strategy = strategy
	dialect, err := wire.ToDialect(cfg.Dialect)
	if err != nil {
		return nil, err
	}
	return &lock{s: s, path: path, cfg: cfg, dialect: dialect}, nil
}

// check validates what can be validated without the plugin.
func check(path string, s recipes.Strategy) (recipes.Strategy, error) {
	if err := recipes.ValidatePath(path); err != nil {
		return "", err
	}
	return recipes.ParseStrategy(string(s))
}

func (l *lock) Path() string { return l.path }

func (l *lock) Acquire(ctx context.Context) (recipes.Hold, error) {
	return l.acquire(ctx, false)
}

func (l *lock) TryAcquire(ctx context.Context) (recipes.Hold, error) {
	return l.acquire(ctx, true)
}

func (l *lock) acquire(ctx context.Context, try bool) (recipes.Hold, error) {
	if err := l.s.hasDialect(ctx, "lock "+l.path, l.dialect); err != nil {
		return nil, err
	}
	g, err := l.s.contend(ctx, "lock", "lock "+l.path, true, l.cfg.Joined, func(ctx context.Context, id string, had *pb.Grant) (answer, error) {
		return l.s.locks.Acquire(ctx, &pb.AcquireRequest{
			Session: l.s.handle, RequestId: id,
			Path: l.path, Strategy: string(l.cfg.Strategy), Dialect: l.dialect, Data: l.cfg.Data,
			Try: try, Announce: l.s.announces(l.cfg.Joined), Resumed: had,
		})
	})
	if err != nil {
		return nil, err
	}
	return hold{g}, nil
}

func (l *lock) Contenders(ctx context.Context) ([]recipes.Contender, error) {
	return l.s.line(ctx, l.path, recipes.KindLock, l.dialect)
}
