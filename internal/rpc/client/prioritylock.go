package client

import (
	"context"
	"fmt"

	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

type priorityLock struct {
	s    *session
	path string
	cfg  recipes.PriorityLockConfig
}

func (s *session) PriorityLock(path string, cfg recipes.PriorityLockConfig) (recipes.PriorityLock, error) {
	strategy, err := check(path, cfg.Strategy)
	if err != nil {
		return nil, err
	}
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("priority lock %s: %w", path, err)
	}
	cfg.Strategy = strategy
	return &priorityLock{s: s, path: path, cfg: cfg}, nil
}

func (l *priorityLock) Path() string { return l.path }

func (l *priorityLock) AcquireRead(ctx context.Context) (recipes.PriorityHold, error) {
	return l.acquire(ctx, recipes.Reading, false)
}

func (l *priorityLock) AcquireWrite(ctx context.Context) (recipes.PriorityHold, error) {
	return l.acquire(ctx, recipes.Writing, false)
}

func (l *priorityLock) TryRead(ctx context.Context) (recipes.PriorityHold, error) {
	return l.acquire(ctx, recipes.Reading, true)
}

func (l *priorityLock) TryWrite(ctx context.Context) (recipes.PriorityHold, error) {
	return l.acquire(ctx, recipes.Writing, true)
}

func (l *priorityLock) acquire(ctx context.Context, mode recipes.Mode, try bool) (recipes.PriorityHold, error) {
	g, err := l.s.contend(ctx, "priority-lock", "priority lock "+l.path, l.cfg.Joined, func(ctx context.Context, id string) (answer, error) {
		return l.s.priorityLocks.AcquirePriority(ctx, &pb.AcquirePriorityRequest{
			Session: l.s.handle, RequestId: id,
			Path: l.path, Strategy: string(l.cfg.Strategy), Data: l.cfg.Data,
			Try: try, Announce: l.cfg.Joined != nil,
			Mode: wire.ToMode(mode), Revocable: l.cfg.Revocable, Grace: wire.ToDuration(l.cfg.Grace),
			Priority: int32(l.cfg.Priority), Ask: l.cfg.Ask,
		})
	})
	if err != nil {
		return nil, err
	}
	return &priorityHold{hold: hold{g}, request: newRequest(g), mode: mode}, nil
}

func (l *priorityLock) Contenders(ctx context.Context) ([]recipes.Contender, error) {
	return l.s.line(ctx, l.path, recipes.KindPriorityLock)
}

func (l *priorityLock) Revoke(ctx context.Context, znode string) error {
	return l.revoke(ctx, znode, false)
}

func (l *priorityLock) RevokeForced(ctx context.Context, znode string) error {
	return l.revoke(ctx, znode, true)
}

func (l *priorityLock) revoke(ctx context.Context, znode string, force bool) error {
	return l.s.call(ctx, "revoke "+znode, func(ctx context.Context) error {
		_, err := l.s.priorityLocks.RevokePriority(ctx, &pb.RevokePriorityRequest{
			Session: l.s.handle, Path: l.path, Znode: znode, Force: force,
		})
		return err
	})
}

type priorityHold struct {
	hold
	*request
	mode recipes.Mode
}

func (h *priorityHold) Mode() recipes.Mode { return h.mode }

func (h *priorityHold) HandOff(ctx context.Context, heir string) error {
	err := h.change(ctx, "hand-off", nil, func(ctx context.Context) error {
		_, err := h.s.priorityLocks.HandOff(ctx, &pb.HandOffRequest{Session: h.s.handle, RequestId: h.id, Heir: heir})
		return err
	})
	if err == nil {
		h.s.forget(h.id)
		h.lose(recipes.ErrReleased)
	}
	return err
}
