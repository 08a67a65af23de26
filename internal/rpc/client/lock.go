package client

import (
	"context"
	"fmt"

	"github.com/zkrecipes/zkrecipes/internal/rpc/link"
	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

var electionService = pb.NewElectionServiceClient(link.Router{})

// queued is a recipe whose contenders wait in line for an H.
type queued[H any] struct {
	recipe
	name    string // in the metrics
	kind    recipes.Kind
	joined  func(recipes.Place)
	hold    func(granted) H
	request *pb.AcquireRequest // the data and the recipe
}

func (q queued[H]) Acquire(ctx context.Context) (H, error)    { return q.acquire(ctx, false) }
func (q queued[H]) TryAcquire(ctx context.Context) (H, error) { return q.acquire(ctx, true) }

func (q queued[H]) acquire(ctx context.Context, try bool) (none H, err error) {
	request := &pb.AcquireRequest{Data: q.request.GetData(), Try: try, Recipe: q.request.GetRecipe()}
	g, a, err := q.recipe.acquire(ctx, q.name, request, q.joined)
	if err != nil {
		return none, err
	}
	return q.hold(granted{g, request, a}), nil
}

func (q queued[H]) Contenders(ctx context.Context) ([]recipes.Contender, error) {
	return q.line(ctx, q.kind)
}

// granted is a grant with its request and its answer.
type granted struct {
	*link.Grant
	request *pb.AcquireRequest
	answer  *pb.AcquireResponse
}

type hold struct{ *link.Grant }

func newHold(g granted) recipes.Hold { return hold{g.Grant} }

func (h hold) Release(ctx context.Context) error { return h.ReleaseGrant(ctx) }

func (s *session) Lock(path string, cfg recipes.LockConfig) (recipes.Lock, error) {
	r, err := s.at("lock", path, cfg.Dialect, normalize(&cfg.Strategy))
	if err != nil {
		return nil, err
	}
	m := &pb.AcquireRequest_Lock{Lock: &pb.Lock{Strategy: string(cfg.Strategy)}}
	request := &pb.AcquireRequest{Data: cfg.Data, Recipe: m}
	return queued[recipes.Hold]{r, "lock", recipes.KindLock, cfg.Joined, newHold, request}, nil
}

func (s *session) Semaphore(path string, cfg recipes.SemaphoreConfig) (recipes.Semaphore, error) {
	r, err := s.at("semaphore", path, cfg.Dialect, normalize(&cfg.Strategy), cfg.Validate())
	if err != nil {
		return nil, err
	}
	m := &pb.AcquireRequest_Semaphore{Semaphore: &pb.Semaphore{Strategy: string(cfg.Strategy), Permits: int32(cfg.Permits)}}
	request := &pb.AcquireRequest{Data: cfg.Data, Recipe: m}
	return queued[recipes.Hold]{r, "semaphore", recipes.KindSemaphore, cfg.Joined, newHold, request}, nil
}

func (s *session) Shares(path string, n int, cfg recipes.SharesConfig) (recipes.Shares, error) {
	return recipes.NewShares(s, path, n, cfg)
}

type slotHold struct {
	hold
	slot int
}

func newSlotHold(g granted) recipes.SlotHold {
	return slotHold{hold{g.Grant}, int(g.answer.GetSlot())}
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
	m := &pb.AcquireRequest_Slots{Slots: &pb.Semaphore{Strategy: string(cfg.Strategy), Permits: int32(cfg.Permits)}}
	request := &pb.AcquireRequest{Data: cfg.Data, Recipe: m}
	return queued[recipes.SlotHold]{r, "slots", recipes.KindSemaphore, cfg.Joined, newSlotHold, request}, nil
}

type election struct {
	recipe
	cfg recipes.ElectionConfig
}

type leadership struct{ *link.Grant }

func (l leadership) Resign(ctx context.Context) error { return l.ReleaseGrant(ctx) }

func (l leadership) Acknowledge(ctx context.Context, data []byte) error {
	return link.WriteAs(ctx, l.Grant, "acknowledge", electionService.Acknowledge,
		&pb.AcknowledgeRequest{Session: l.Session().Handle(), RequestId: l.ID(), Data: data})
}

func (s *session) Election(path string, cfg recipes.ElectionConfig) (recipes.Election, error) {
	r, err := s.at("election", path, cfg.Dialect, normalize(&cfg.Strategy))
	if err != nil {
		return nil, err
	}
	return election{r, cfg}, nil
}

func (e election) Campaign(ctx context.Context, proposal []byte) (recipes.Leadership, error) {
	m := &pb.AcquireRequest_Election{Election: &pb.Election{Strategy: string(e.cfg.Strategy), EndsWithHost: e.cfg.EndsWithProcess}}
	g, _, err := e.acquire(ctx, "election", &pb.AcquireRequest{Data: proposal, Recipe: m}, e.cfg.Joined)
	if err != nil {
		return nil, err
	}
	return leadership{g}, nil
}

func (e election) Leader(ctx context.Context) (recipes.Leader, error) {
	return read(ctx, e.recipe, electionService.Leader, &pb.LeaderRequest{Session: e.s.Handle(), Path: e.path, Dialect: e.dialect},
		func(a *pb.LeaderResponse) recipes.Leader { return wire.Leader(a.GetLeader()) })
}

func (e election) Acknowledged(ctx context.Context) (recipes.Leader, error) {
	return read(ctx, e.recipe, electionService.Acknowledged, &pb.AcknowledgedRequest{Session: e.s.Handle(), Path: e.path, Dialect: e.dialect},
		func(a *pb.AcknowledgedResponse) recipes.Leader { return wire.Leader(a.GetLeader()) })
}

func (e election) Candidates(ctx context.Context) ([]recipes.Contender, error) {
	return e.line(ctx, recipes.KindElection)
}

func (e election) Observe(ctx context.Context) (<-chan recipes.Leader, error) {
	return follow(ctx, e.recipe, electionService.Observe, &pb.ObserveRequest{Session: e.s.Handle(), Path: e.path, Dialect: e.dialect},
		func(m *pb.ObserveResponse) recipes.Leader { return wire.Leader(m.GetLeader()) })
}
