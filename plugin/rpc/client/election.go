package client

import (
	"context"
	"fmt"

	"github.com/zkrecipes/zkrecipes/internal/feed"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/plugin/rpc/wire"
	"github.com/zkrecipes/zkrecipes/recipes"
)

type election struct {
	s    *session
	path string
	cfg  recipes.ElectionConfig
}

type leadership struct{ *grant }

func (l leadership) Resign(ctx context.Context) error { return l.release(ctx) }

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
	return &election{s: s, path: path, cfg: cfg}, nil
}

func (e *election) Path() string { return e.path }

func (e *election) Campaign(ctx context.Context, proposal []byte) (recipes.Leadership, error) {
	g, err := e.s.contend(ctx, "election", "election "+e.path, e.cfg.Joined, func(ctx context.Context, id string) (answer, error) {
		return e.s.elections.Campaign(ctx, &pb.CampaignRequest{
			Session: e.s.handle, RequestId: id,
			Path: e.path, Strategy: string(e.cfg.Strategy), Proposal: proposal,
			Announce: e.cfg.Joined != nil,
		})
	})
	if err != nil {
		return nil, err
	}
	return leadership{g}, nil
}

func (e *election) Leader(ctx context.Context) (recipes.Leader, error) {
	var l recipes.Leader
	err := e.s.call(ctx, "election "+e.path, func(ctx context.Context) error {
		r, err := e.s.elections.Leader(ctx, &pb.LeaderRequest{Session: e.s.handle, Path: e.path})
		l = wire.Leader(r.GetLeader())
		return err
	})
	return l, err
}

func (e *election) Acknowledged(ctx context.Context) (recipes.Leader, error) {
	var l recipes.Leader
	err := e.s.call(ctx, "election "+e.path, func(ctx context.Context) error {
		r, err := e.s.elections.Acknowledged(ctx, &pb.AcknowledgedRequest{Session: e.s.handle, Path: e.path})
		l = wire.Leader(r.GetLeader())
		return err
	})
	return l, err
}

func (e *election) Candidates(ctx context.Context) ([]recipes.Contender, error) {
	var line []recipes.Contender
	err := e.s.call(ctx, "election "+e.path, func(ctx context.Context) error {
		r, err := e.s.elections.Candidates(ctx, &pb.CandidatesRequest{Session: e.s.handle, Path: e.path})
		line = wire.Contenders(r.GetCandidates())
		return err
	})
	if err != nil {
		return nil, err
	}
	return line, nil
}

// Observe reads the plugin's stream without waiting for the application, so
// that a slow reader gets the latest leader and not those that queue.
func (e *election) Observe(ctx context.Context) (<-chan recipes.Leader, error) {
	what := "election " + e.path
	if err := e.s.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	observing, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(e.s.over, cancel)
	end := func() { stop(); cancel() }

	st, err := e.s.elections.Observe(observing, &pb.ObserveRequest{Session: e.s.handle, Path: e.path})
	var first *pb.ObserveResponse
	if err == nil {
		first, err = st.Recv()
	}
	if err != nil {
		end()
		return nil, e.s.explain(ctx, what, err)
	}
	leaders := feed.New(wire.Leader(first.GetLeader()))
	if !e.s.spawn(func() {
		defer end()
		for m, err := st.Recv(); err == nil; m, err = st.Recv() {
			leaders.Set(wire.Leader(m.GetLeader()))
		}
	}) {
		end()
		return nil, fmt.Errorf("%s: %w", what, e.s.Err())
	}
	return leaders.Watch(observing), nil
}
