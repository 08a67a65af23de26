package client

import (
	"context"
	"fmt"

	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
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
	r, err := s.at("lock", path, cfg.Dialect, normalize(&cfg.Strategy))
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
	g, _, err := l.recipe.acquire(ctx, "lock", l.cfg.Joined, func(ctx context.Context, id string, resumed *pb.Grant) (answer, error) {
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

type semaphore struct {
	recipe
	cfg recipes.SemaphoreConfig
}

func (s *session) Semaphore(path string, cfg recipes.SemaphoreConfig) (recipes.Semaphore, error) {
	m, err := s.semaphore("semaphore", path, cfg)
	if err != nil {
		return nil, err
	}
	return m, nil
}

func (s *session) semaphore(kind, path string, cfg recipes.SemaphoreConfig) (semaphore, error) {
	r, err := s.at(kind, path, cfg.Dialect, normalize(&cfg.Strategy), cfg.Validate())
	return semaphore{r, cfg}, err
}

func (m semaphore) Acquire(ctx context.Context) (recipes.Hold, error) {
	return m.acquire(ctx, false)
}

func (m semaphore) TryAcquire(ctx context.Context) (recipes.Hold, error) {
	return m.acquire(ctx, true)
}

func (m semaphore) acquire(ctx context.Context, try bool) (recipes.Hold, error) {
	g, _, err := m.recipe.acquire(ctx, "semaphore", m.cfg.Joined, func(ctx context.Context, id string, resumed *pb.Grant) (answer, error) {
		return m.s.semaphores.AcquirePermit(ctx, &pb.AcquirePermitRequest{
			Session: m.s.handle, RequestId: id,
			Path: m.path, Strategy: string(m.cfg.Strategy), Data: m.cfg.Data,
			Try: try, Announce: m.s.announces(m.cfg.Joined), Permits: int32(m.cfg.Permits),
			Dialect: m.dialect, Resumed: resumed,
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

func (s *session) Shares(path string, n int, cfg recipes.SharesConfig) (recipes.Shares, error) {
	return recipes.NewShares(s, path, n, cfg)
}

type slots struct{ semaphore }

func (s *session) Slots(path string, cfg recipes.SemaphoreConfig) (recipes.Slots, error) {
	m, err := s.semaphore("slots", path, cfg)
	if err == nil && m.dialect != "" {
		err = fmt.Errorf("%s: %w: it has no dialect %s", m, recipes.ErrInvalid, cfg.Dialect)
	}
	if err != nil {
		return nil, err
	}
	return slots{m}, nil
}

type slotHold struct {
	hold
	slot int
}

func (h slotHold) Slot() int { return h.slot }

func (m slots) Acquire(ctx context.Context) (recipes.SlotHold, error) {
	return m.acquire(ctx, false)
}

func (m slots) TryAcquire(ctx context.Context) (recipes.SlotHold, error) {
	return m.acquire(ctx, true)
}

func (m slots) acquire(ctx context.Context, try bool) (recipes.SlotHold, error) {
	g, a, err := m.recipe.acquire(ctx, "slots", m.cfg.Joined, func(ctx context.Context, id string, resumed *pb.Grant) (answer, error) {
		return m.s.semaphores.AcquireSlot(ctx, &pb.AcquireSlotRequest{
			Session: m.s.handle, RequestId: id,
			Path: m.path, Strategy: string(m.cfg.Strategy), Data: m.cfg.Data,
			Try: try, Announce: m.s.announces(m.cfg.Joined), Permits: int32(m.cfg.Permits), Resumed: resumed,
		})
	})
	if err != nil {
		return nil, err
	}
	return slotHold{hold{g}, int(a.(*pb.AcquireSlotResponse).GetSlot())}, nil
}

type election struct {
	recipe
	cfg recipes.ElectionConfig
}

type leadership struct{ *remoteGrant }

func (l leadership) Resign(ctx context.Context) error { return l.releaseGrant(ctx) }

func (l leadership) Acknowledge(ctx context.Context, data []byte) error {
	return writeAs(ctx, l.remoteGrant, "acknowledge", l.s.elections.Acknowledge,
		&pb.AcknowledgeRequest{Session: l.s.handle, RequestId: l.id, Data: data})
}

func (s *session) Election(path string, cfg recipes.ElectionConfig) (recipes.Election, error) {
	r, err := s.at("election", path, cfg.Dialect, normalize(&cfg.Strategy))
	if err != nil {
		return nil, err
	}
	return election{r, cfg}, nil
}

func (e election) Campaign(ctx context.Context, proposal []byte) (recipes.Leadership, error) {
	g, _, err := e.acquire(ctx, "election", e.cfg.Joined, func(ctx context.Context, id string, resumed *pb.Grant) (answer, error) {
		return e.s.elections.Campaign(ctx, &pb.CampaignRequest{
			Session: e.s.handle, RequestId: id,
			Path: e.path, Strategy: string(e.cfg.Strategy), Dialect: e.dialect, Proposal: proposal,
			Announce: e.s.announces(e.cfg.Joined), Resumed: resumed,
		})
	})
	if err != nil {
		return nil, err
	}
	return leadership{g}, nil
}

func (e election) Leader(ctx context.Context) (recipes.Leader, error) {
	return read(ctx, e.recipe, e.s.elections.Leader, &pb.LeaderRequest{Session: e.s.handle, Path: e.path, Dialect: e.dialect},
		func(a *pb.LeaderResponse) recipes.Leader { return wire.Leader(a.GetLeader()) })
}

func (e election) Acknowledged(ctx context.Context) (recipes.Leader, error) {
	return read(ctx, e.recipe, e.s.elections.Acknowledged, &pb.AcknowledgedRequest{Session: e.s.handle, Path: e.path, Dialect: e.dialect},
		func(a *pb.AcknowledgedResponse) recipes.Leader { return wire.Leader(a.GetLeader()) })
}

func (e election) Candidates(ctx context.Context) ([]recipes.Contender, error) {
	return e.line(ctx, recipes.KindElection)
}

func (e election) Observe(ctx context.Context) (<-chan recipes.Leader, error) {
	return follow(ctx, e.recipe, e.s.elections.Observe, &pb.ObserveRequest{Session: e.s.handle, Path: e.path, Dialect: e.dialect},
		func(m *pb.ObserveResponse) recipes.Leader { return wire.Leader(m.GetLeader()) })
}
