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
	c, err := s.contend(ctx, r, r.GetAnnounce(), func(ctx context.Context, ss *session, joined func(recipes.Place)) (*held, error) {
		dialect, err := wire.Dialect(r.GetDialect())
		if err != nil {
			return nil, err
		}
		election, err := ss.Election(r.GetPath(), recipes.ElectionConfig{
			Dialect: dialect, Strategy: recipes.Strategy(r.GetStrategy()), Joined: joined,
		})
		if err != nil {
			return nil, err
		}
		var leadership recipes.Leadership
		if had := r.GetResumed(); had != nil {
			leadership, err = takeUp[recipes.Leadership](ctx, election, had, false)
		} else {
			leadership, err = election.Campaign(ctx, r.GetProposal())
		}
		if err != nil {
			return nil, err
		}
		return &held{Grant: leadership, giveBack: leadership.Resign}, nil
	})
	if err != nil {
		return nil, err
	}
	return &pb.CampaignResponse{Grant: toGrant(c), Place: toPlace(c)}, nil
}

func (s electionService) Acknowledge(ctx context.Context, r *pb.AcknowledgeRequest) (*pb.AcknowledgeResponse, error) {
	ss, c, err := s.granted(r)
	if err != nil {
		return nil, err
	}
	leadership, err := as[recipes.Leadership](c, "no leadership")
	if err != nil {
		return nil, err
	}
	err = leadership.Acknowledge(ctx, r.GetData())
	ss.tickets.judge(c, err)
	return &pb.AcknowledgeResponse{}, err
}

// election finds an election, for calls that do not depend on how it waits.
func (s *Server) election(r interface {
	GetSession() string
	GetPath() string
	GetDialect() string
}) (recipes.Election, error) {
	ss, err := s.session(r.GetSession())
	if err != nil {
		return nil, err
	}
	dialect, err := wire.Dialect(r.GetDialect())
	if err != nil {
		return nil, err
	}
	return ss.Election(r.GetPath(), recipes.ElectionConfig{Dialect: dialect})
}

func (s electionService) Leader(ctx context.Context, r *pb.LeaderRequest) (*pb.LeaderResponse, error) {
	e, err := s.election(r)
	if err != nil {
		return nil, err
	}
	l, err := e.Leader(ctx)
	return &pb.LeaderResponse{Leader: wire.ToLeader(l)}, err
}

func (s electionService) Acknowledged(ctx context.Context, r *pb.AcknowledgedRequest) (*pb.AcknowledgedResponse, error) {
	e, err := s.election(r)
	if err != nil {
		return nil, err
	}
	l, err := e.Acknowledged(ctx)
	return &pb.AcknowledgedResponse{Leader: wire.ToLeader(l)}, err
}

func (s electionService) Observe(r *pb.ObserveRequest, st grpc.ServerStreamingServer[pb.ObserveResponse]) error {
	e, err := s.election(r)
	if err != nil {
		return err
	}
	leaders, err := e.Observe(st.Context())
	return forward(st, leaders, err, func(l recipes.Leader) *pb.ObserveResponse {
		return &pb.ObserveResponse{Leader: wire.ToLeader(l)}
	})
}
