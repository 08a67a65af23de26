package client

import (
	"context"

	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

type lock struct {
	recipe
	cfg recipes.LockConfig
}

type hold struct{ *remoteGrant }

func (h hold) Release(ctx context.Context) error { return h.releaseGrant(ctx) }

func (s *session) Lock(path string, cfg recipes.LockConfig) (recipes.Lock, error) {
	r, err := s.at("lock", path, cfg.Dialect)
	if err == nil {
		cfg.Strategy, err = cfg.Strategy.Normalize()
	}
	if err != nil {
		return nil, err
	}
	return lock{r, cfg}, nil
}

func (l lock) Acquire(ctx context.Context) (recipes.Hold, error) {
	return l.acquire(ctx, false)
}

func (l lock) TryAcquire(ctx context.Context) (recipes.Hold, error) {
	return l.acquire(ctx, true)
}

func (l lock) acquire(ctx context.Context, try bool) (recipes.Hold, error) {
	g, err := l.recipe.acquire(ctx, "lock", l.cfg.Joined, func(ctx context.Context, id string, resumed *pb.Grant) (answer, error) {
		return l.s.locks.Acquire(ctx, &pb.AcquireRequest{
			Session: l.s.handle, RequestId: id,
			Path: l.path, Strategy: string(l.cfg.Strategy), Dialect: l.dialect, Data: l.cfg.Data,
			Try: try, Announce: l.s.announces(l.cfg.Joined), Resumed: resumed,
		})
	})
	if err != nil {
		return nil, err
	}
	return hold{g}, nil
}

func (l lock) Contenders(ctx context.Context) ([]recipes.Contender, error) {
	return l.line(ctx, recipes.KindLock)
}
