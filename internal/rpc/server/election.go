package server

import (
	"context"
	"fmt"

	"google.golang.org/grpc"

	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

func (s service) Campaign(ctx context.Context, r *pb.CampaignRequest) (*pb.CampaignResponse, error) {
	open := func(t target, joined func(recipes.Place)) (recipes.Election, error) {
		return t.Election(t.path, recipes.ElectionConfig{Dialect: t.dialect, Strategy: recipes.Strategy(r.GetStrategy()), Joined: joined})
	}
	campaign := func(e recipes.Election, ctx context.Context) (recipes.Leadership, error) {
		return e.Campaign(ctx, r.GetProposal())
	}
	c, err := s.contend(ctx, r, r.GetAnnounce(), granting(r, open, campaign, recipes.Leadership.Resign))
	return &pb.CampaignResponse{Grant: toGrant(c), Place: toPlace(c)}, err
}

func (s service) Acknowledge(ctx context.Context, r *pb.AcknowledgeRequest) (*pb.AcknowledgeResponse, error) {
	return &pb.AcknowledgeResponse{}, withGrant(s.Server, r, "no leadership", func(_ *session, _ *acquisition, l recipes.Leadership) error {
		return l.Acknowledge(ctx, r.GetData())
	})
}

// election opens an election for calls that do not campaign.
func election(t target) (recipes.Election, error) {
	return t.Election(t.path, recipes.ElectionConfig{Dialect: t.dialect})
}

func (s service) Leader(ctx context.Context, r *pb.LeaderRequest) (*pb.LeaderResponse, error) {
	l, err := with(s.Server, r, election, func(e recipes.Election) (recipes.Leader, error) { return e.Leader(ctx) })
	return &pb.LeaderResponse{Leader: wire.ToLeader(l)}, err
}

func (s service) Acknowledged(ctx context.Context, r *pb.AcknowledgedRequest) (*pb.AcknowledgedResponse, error) {
	l, err := with(s.Server, r, election, func(e recipes.Election) (recipes.Leader, error) { return e.Acknowledged(ctx) })
	return &pb.AcknowledgedResponse{Leader: wire.ToLeader(l)}, err
}

func (s service) Observe(r *pb.ObserveRequest, st grpc.ServerStreamingServer[pb.ObserveResponse]) error {
	leaders, err := with(s.Server, r, election, func(e recipes.Election) (<-chan recipes.Leader, error) { return e.Observe(st.Context()) })
	return forward(st, leaders, err, func(l recipes.Leader) *pb.ObserveResponse {
		return &pb.ObserveResponse{Leader: wire.ToLeader(l)}
	})
}

func (s service) Contenders(ctx context.Context, r *pb.ContendersRequest) (*pb.ContendersResponse, error) {
	t, err := s.target(r)
	if err != nil {
		return nil, err
	}
	if t.dialect != "" {
		found, err := t.line(ctx, wire.Strings[recipes.Kind](r.GetKinds()))
		return &pb.ContendersResponse{Contenders: wire.Each(found, wire.ToContender)}, err
	}
	lines, err := t.Client.Contenders(ctx, t.path, wire.Strings[recipes.Kind](r.GetKinds())...)
	return wire.ToLines(lines), err
}

// line returns the contenders of one kind in one dialect.
func (t target) line(ctx context.Context, kinds []recipes.Kind) (_ []recipes.Contender, err error) {
	if len(kinds) != 1 {
		return nil, fmt.Errorf("%w: a request with a dialect needs exactly one kind, and has %d", recipes.ErrInvalid, len(kinds))
	}
	var line interface {
		Contenders(context.Context) ([]recipes.Contender, error)
	}
	switch kind := kinds[0]; {
	case kind == recipes.KindLock:
		line, err = t.Lock(t.path, recipes.LockConfig{Dialect: t.dialect})
	case kind == recipes.KindSharedLock:
		line, err = t.SharedLock(t.path, recipes.SharedLockConfig{Dialect: t.dialect})
	case kind == recipes.KindElection:
		e, err := election(t)
		if err != nil {
			return nil, err
		}
		return e.Candidates(ctx)
	case t.dialect == recipes.ZooKeeper: // recipes without dialects, and semaphores, whose number of permits is unknown
		lines, err := t.Client.Contenders(ctx, t.path, kind)
		return lines.Contenders, err
	case kind == recipes.KindSemaphore:
		line, err = t.Semaphore(t.path, recipes.SemaphoreConfig{Permits: 1, Dialect: t.dialect})
	default:
		err = fmt.Errorf("%w: the kind %q has no dialects", recipes.ErrInvalid, kind)
	}
	if err != nil {
		return nil, err
	}
	return line.Contenders(ctx)
}
