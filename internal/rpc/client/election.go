package client

import (
	"context"

	"google.golang.org/grpc"

	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

type election struct {
	s    *session
	path string
	cfg  recipes.ElectionConfig

	dialect string // as wire.ToDialect has it
}

type leadership struct{ *grant }

func (l leadership) Resign(ctx context.Context) error { return l.giveBack(ctx) }

func (l leadership) Acknowledge(ctx context.Context, data []byte) error {
	return l.change(ctx, "acknowledge", nil, func(ctx context.Context) error {
		_, err := l.s.elections.Acknowledge(ctx, &pb.AcknowledgeRequest{
			Session: l.s.handle, RequestId: l.id, Data: data,
		})
		return err
	})
}

func (s *session) Election(path string, cfg recipes.ElectionConfig) (recipes.Election, error) {
	strategy, err := check(path, cfg.Strategy)
	if err != nil {
		return nil, err
	}
	cfg.Strategy = strategy
	dialect, err := wire.ToDialect(cfg.Dialect)
	if err != nil {
		return nil, err
	}
	return &election{s: s, path: path, cfg: cfg, dialect: dialect}, nil
}

func (e *election) Path() string { return e.path }

func (e *election) speaks(ctx context.Context) error {
	return e.s.hasDialect(ctx, "election "+e.path, e.dialect)
}

func (e *election) Campaign(ctx context.Context, proposal []byte) (recipes.Leadership, error) {
	if err := e.speaks(ctx); err != nil {
		return nil, err
	}
	g, err := e.s.contend(ctx, "election", "election "+e.path, true, e.cfg.Joined, func(ctx context.Context, id string, had *pb.Grant) (answer, error) {
		return e.s.elections.Campaign(ctx, &pb.CampaignRequest{
			Session: e.s.handle, RequestId: id,
			Path: e.path, Strategy: string(e.cfg.Strategy), Dialect: e.dialect, Proposal: proposal,
			Announce: e.s.announces(e.cfg.Joined), Resumed: had,
		})
	})
	if err != nil {
		return nil, err
	}
	return leadership{g}, nil
}

func (e *election) Leader(ctx context.Context) (recipes.Leader, error) {
	if err := e.speaks(ctx); err != nil {
		return recipes.Leader{}, err
	}
	return query(ctx, e.s, "election "+e.path, func(ctx context.Context) (recipes.Leader, error) {
		r, err := e.s.elections.Leader(ctx, &pb.LeaderRequest{Session: e.s.handle, Path: e.path, Dialect: e.dialect})
		return wire.Leader(r.GetLeader()), err
	})
}

func (e *election) Acknowledged(ctx context.Context) (recipes.Leader, error) {
	if err := e.speaks(ctx); err != nil {
		return recipes.Leader{}, err
	}
	return query(ctx, e.s, "election "+e.path, func(ctx context.Context) (recipes.Leader, error) {
		r, err := e.s.elections.Acknowledged(ctx, &pb.AcknowledgedRequest{Session: e.s.handle, Path: e.path, Dialect: e.dialect})
		return wire.Leader(r.GetLeader()), err
	})
}

func (e *election) Candidates(ctx context.Context) ([]recipes.Contender, error) {
	return e.s.line(ctx, e.path, recipes.KindElection, e.dialect)
}

func (e *election) Observe(ctx context.Context) (<-chan recipes.Leader, error) {
	if err := e.speaks(ctx); err != nil {
		return nil, err
	}
	return watch(ctx, e.s, "election "+e.path,
		func(ctx context.Context) (grpc.ServerStreamingClient[pb.ObserveResponse], error) {
			return e.s.elections.Observe(ctx, &pb.ObserveRequest{Session: e.s.handle, Path: e.path, Dialect: e.dialect})
		},
		func(m *pb.ObserveResponse) recipes.Leader { return wire.Leader(m.GetLeader()) })
}
