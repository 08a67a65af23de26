package client

import (
	"context"
	"fmt"

	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

type semaphore struct {
	s    *session
	path string
	cfg  recipes.SemaphoreConfig

	dialect string // as wire.ToDialect has it
}

func (s *session) Semaphore(path string, cfg recipes.SemaphoreConfig) (recipes.Semaphore, error) {
	strategy, err := check(path, cfg.Strategy)
	if err != nil {
		return nil, err
	}
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("semaphore %s: %w", path, err)
	}
	dialect, err := wire.ToDialect(cfg.Dialect)
	if err != nil {
		return nil, fmt.Errorf("semaphore %s: %w", path, err)
	}
	cfg.Strategy = strategy
	return &semaphore{s: s, path: path, cfg: cfg, dialect: dialect}, nil
}

func (m *semaphore) Path() string { return m.path }

func (m *semaphore) Acquire(ctx context.Context) (recipes.Hold, error) {
	return m.acquire(ctx, false)
}

func (m *semaphore) TryAcquire(ctx context.Context) (recipes.Hold, error) {
	return m.acquire(ctx, true)
}

func (m *semaphore) acquire(ctx context.Context, try bool) (recipes.Hold, error) {
	if err := m.s.hasDialect(ctx, "semaphore "+m.path, m.dialect); err != nil {
		return nil, err
	}
	g, err := m.s.contend(ctx, "semaphore", "semaphore "+m.path, true, m.cfg.Joined, func(ctx context.Context, id string, had *pb.Grant) (answer, error) {
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

func (m *semaphore) Contenders(ctx context.Context) ([]recipes.Contender, error) {
	return m.s.line(ctx, m.path, recipes.KindSemaphore, m.dialect)
}
