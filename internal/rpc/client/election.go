package client

import (
	"context"

	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

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
	g, err := e.acquire(ctx, "election", e.cfg.Joined, func(ctx context.Context, id string, resumed *pb.Grant) (answer, error) {
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
