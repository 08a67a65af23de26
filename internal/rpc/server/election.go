package server

import (
	"context"

	"google.golang.org/grpc"

	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

type electionService struct {
	pb.UnimplementedElectionServiceServer
	*Server
}

func (s electionService) Campaign(ctx context.Context, r *pb.CampaignRequest) (*pb.CampaignResponse, error) {
	c, err := s.contend(ctx, r, r.GetAnnounce(), func(ctx context.Context, t target, joined func(recipes.Place)) (*grant, error) {
		e, err := t.Election(t.path, recipes.ElectionConfig{Dialect: t.dialect, Strategy: recipes.Strategy(r.GetStrategy()), Joined: joined})
		if err != nil {
			return nil, err
		}
		campaign := func(ctx context.Context) (recipes.Leadership, error) { return e.Campaign(ctx, r.GetProposal()) }
		return acquire(ctx, e, r, campaign, recipes.Leadership.Resign)
	})
	if err != nil {
		return nil, err
	}
	return &pb.CampaignResponse{Grant: toGrant(c), Place: toPlace(c)}, nil
}

func (s electionService) Acknowledge(ctx context.Context, r *pb.AcknowledgeRequest) (*pb.AcknowledgeResponse, error) {
	return withGrant(s.Server, r, "no leadership", func(_ *session, _ *acquisition, l recipes.Leadership) (*pb.AcknowledgeResponse, error) {
		return &pb.AcknowledgeResponse{}, l.Acknowledge(ctx, r.GetData())
	})
}

// election opens an election for calls that do not campaign.
func election(t target) (recipes.Election, error) {
	return t.Election(t.path, recipes.ElectionConfig{Dialect: t.dialect})
}

func (s electionService) Leader(ctx context.Context, r *pb.LeaderRequest) (*pb.LeaderResponse, error) {
	return with(s.Server, r, election, func(e recipes.Election) (*pb.LeaderResponse, error) {
		l, err := e.Leader(ctx)
		return &pb.LeaderResponse{Leader: wire.ToLeader(l)}, err
	})
}

func (s electionService) Acknowledged(ctx context.Context, r *pb.AcknowledgedRequest) (*pb.AcknowledgedResponse, error) {
	return with(s.Server, r, election, func(e recipes.Election) (*pb.AcknowledgedResponse, error) {
		l, err := e.Acknowledged(ctx)
		return &pb.AcknowledgedResponse{Leader: wire.ToLeader(l)}, err
	})
}

func (s electionService) Observe(r *pb.ObserveRequest, st grpc.ServerStreamingServer[pb.ObserveResponse]) error {
	leaders, err := with(s.Server, r, election, func(e recipes.Election) (<-chan recipes.Leader, error) { return e.Observe(st.Context()) })
	return forward(st, leaders, err, func(l recipes.Leader) *pb.ObserveResponse {
		return &pb.ObserveResponse{Leader: wire.ToLeader(l)}
	})
}
