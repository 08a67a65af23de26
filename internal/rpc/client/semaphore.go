package client

import (
	"context"
	"fmt"

	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

type semaphore struct {
	recipe
	cfg recipes.SemaphoreConfig
}

func (s *session) Semaphore(path string, cfg recipes.SemaphoreConfig) (recipes.Semaphore, error) {
	r, err := s.at("semaphore", path, cfg.Dialect)
	if err == nil {
		cfg.Strategy, err = cfg.Strategy.Normalize()
	}
	if err != nil {
		return nil, err
	}
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("%s: %w", r, err)
	}
	return semaphore{r, cfg}, nil
}

func (m semaphore) Acquire(ctx context.Context) (recipes.Hold, error) {
	return m.acquire(ctx, false)
}

func (m semaphore) TryAcquire(ctx context.Context) (recipes.Hold, error) {
	return m.acquire(ctx, true)
}

func (m semaphore) acquire(ctx context.Context, try bool) (recipes.Hold, error) {
	g, err := m.recipe.acquire(ctx, "semaphore", m.cfg.Joined, func(ctx context.Context, id string, had *pb.Grant) (answer, error) {
		return m.s.semaphores.AcquirePermit(ctx, &pb.AcquirePermitRequest{
			Session: m.s.handle, RequestId: id,
			Path: m.path, Strategy: string(m.cfg.Strategy), Data: m.cfg.Data,
			Try: try, Announce: m.s.announces(m.cfg.Joined), Permits: int32(m.cfg.Permits),
			Dialect: m.dialect, Resumed: had,
		})
	})
	if err != nil {
		return nil, err
	}
	return hold{g}, nil
}

func (m semaphore) Contenders(ctx context.Context) ([]recipes.Contender, error) {
	return m.line(ctx, recipes.KindSemaphore)
}
