package client

import (
	"context"
	"fmt"

	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// queued is a recipe whose contenders wait in line for an H.
type queued[H any] struct {
	recipe
	capability string
	kind       recipes.Kind
	joined     func(recipes.Place)
	hold       func(*remoteGrant, answer) H
	ask        func(ctx context.Context, id string, try bool, resumed *pb.Grant) (answer, error)
}

func (q queued[H]) Acquire(ctx context.Context) (H, error)    { return q.acquire(ctx, false) }
func (q queued[H]) TryAcquire(ctx context.Context) (H, error) { return q.acquire(ctx, true) }

func (q queued[H]) acquire(ctx context.Context, try bool) (none H, err error) {
	ask := q.ask // the function below keeps only this of q alive
	g, a, err := q.recipe.acquire(ctx, q.capability, q.joined, func(ctx context.Context, id string, resumed *pb.Grant) (answer, error) {
		return ask(ctx, id, try, resumed)
	})
	if err != nil {
		return none, err
	}
	return q.hold(g, a), nil
}

func (q queued[H]) Contenders(ctx context.Context) ([]recipes.Contender, error) {
	return q.line(ctx, q.kind)
}

type hold struct{ *remoteGrant }

func newHold(g *remoteGrant, _ answer) recipes.Hold { return hold{g} }

func (h hold) Release(ctx context.Context) error { return h.releaseGrant(ctx) }

func (s *session) Lock(path string, cfg recipes.LockConfig) (recipes.Lock, error) {
	r, err := s.at("lock", path, cfg.Dialect, normalize(&cfg.Strategy))
	if err != nil {
		return nil, err
	}
	ask := func(ctx context.Context, id string, try bool, resumed *pb.Grant) (answer, error) {
		return s.locks.Acquire(ctx, &pb.AcquireRequest{
			Session: s.handle, RequestId: id,
			Path: path, Strategy: string(cfg.Strategy), Dialect: r.dialect, Data: cfg.Data,
			Try: try, Announce: s.announces(cfg.Joined), Resumed: resumed,
		})
	}
	return queued[recipes.Hold]{r, "lock", recipes.KindLock, cfg.Joined, newHold, ask}, nil
}

func (s *session) Semaphore(path string, cfg recipes.SemaphoreConfig) (recipes.Semaphore, error) {
	r, err := s.at("semaphore", path, cfg.Dialect, normalize(&cfg.Strategy), cfg.Validate())
	if err != nil {
		return nil, err
	}
	ask := func(ctx context.Context, id string, try bool, resumed *pb.Grant) (answer, error) {
		return s.semaphores.AcquirePermit(ctx, &pb.AcquirePermitRequest{
			Session: s.handle, RequestId: id,
			Path: path, Strategy: string(cfg.Strategy), Data: cfg.Data,
			Try: try, Announce: s.announces(cfg.Joined), Permits: int32(cfg.Permits),
			Dialect: r.dialect, Resumed: resumed,
		})
	}
	return queued[recipes.Hold]{r, "semaphore", recipes.KindSemaphore, cfg.Joined, newHold, ask}, nil
}

func (s *session) Shares(path string, n int, cfg recipes.SharesConfig) (recipes.Shares, error) {
	return recipes.NewShares(s, path, n, cfg)
}

type slotHold struct {
	hold
	slot int
}

func newSlotHold(g *remoteGrant, a answer) recipes.SlotHold {
	return slotHold{hold{g}, int(a.(*pb.AcquireSlotResponse).GetSlot())}
}

func (h slotHold) Slot() int { return h.slot }

func (s *session) Slots(path string, cfg recipes.SemaphoreConfig) (recipes.Slots, error) {
	r, err := s.at("slots", path, cfg.Dialect, normalize(&cfg.Strategy), cfg.Validate())
	if err == nil && r.dialect != "" {
		err = fmt.Errorf("%s: %w: it has no dialect %s", r, recipes.ErrInvalid, cfg.Dialect)
	}
	if err != nil {
		return nil, err
	}
	ask := func(ctx context.Context, id string, try bool, resumed *pb.Grant) (answer, error) {
		return s.semaphores.AcquireSlot(ctx, &pb.AcquireSlotRequest{
			Session: s.handle, RequestId: id,
			Path: path, Strategy: string(cfg.Strategy), Data: cfg.Data,
			Try: try, Announce: s.announces(cfg.Joined), Permits: int32(cfg.Permits), Resumed: resumed,
		})
	}
	return queued[recipes.SlotHold]{r, "slots", recipes.KindSemaphore, cfg.Joined, newSlotHold, ask}, nil
}

type election struct {
	recipe
	cfg recipes.ElectionConfig
}

type leadership struct{ *remoteGrant }

func newLeadership(g *remoteGrant, _ answer) recipes.Leadership { return leadership{g} }

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
	ask := func(ctx context.Context, id string, _ bool, resumed *pb.Grant) (answer, error) {
		return e.s.elections.Campaign(ctx, &pb.CampaignRequest{
			Session: e.s.handle, RequestId: id,
			Path: e.path, Strategy: string(e.cfg.Strategy), Dialect: e.dialect, Proposal: proposal,
			Announce: e.s.announces(e.cfg.Joined), Resumed: resumed, EndsWithHost: e.cfg.EndsWithProcess,
		})
	}
	return queued[recipes.Leadership]{e.recipe, "election", recipes.KindElection, e.cfg.Joined, newLeadership, ask}.Acquire(ctx)
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
