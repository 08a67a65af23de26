package server

import (
	"context"
	"fmt"

	"google.golang.org/grpc"

	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/plugin/rpc/wire"
	"github.com/zkrecipes/zkrecipes/recipes"
)

type electionService struct {
	pb.UnimplementedElectionServiceServer
	*Server
}

func (s electionService) Campaign(ctx context.Context, r *pb.CampaignRequest) (*pb.CampaignResponse, error) {
	ss, err := s.Server.session(r.GetSession())
	if err != nil {
		return nil, wire.ToStatus(err, nil)
	}
	c, err := ss.claims.call(ctx, r.GetRequestId(), r.GetAnnounce(), ss.campaign(r))
	if err != nil {
		return nil, claimStatus(c, err)
	}
	return &pb.CampaignResponse{Grant: toGrant(c), Place: toPlace(c)}, nil
}

func (ss *session) campaign(r *pb.CampaignRequest) contest {
	return func(ctx context.Context, joined func(recipes.Place)) (*held, error) {
		election, err := ss.Election(r.GetPath(), recipes.ElectionConfig{
			Strategy: recipes.Strategy(r.GetStrategy()), Joined: joined,
		})
		if err != nil {
			return nil, err
		}
		leadership, err := election.Campaign(ctx, r.GetProposal())
		if err != nil {
			return nil, err
		}
		return &held{Grant: leadership, giveBack: leadership.Resign}, nil
	}
}

func (s electionService) Acknowledge(ctx context.Context, r *pb.AcknowledgeRequest) (*pb.AcknowledgeResponse, error) {
	ss, err := s.session(r.GetSession())
	if err != nil {
		return nil, wire.ToStatus(err, nil)
	}
	c, err := ss.claims.granted(r.GetRequestId())
	if err != nil {
		return nil, wire.ToStatus(err, nil)
	}
	leadership, ok := c.grant.Grant.(recipes.Leadership)
	if !ok {
		return nil, wire.ToStatus(fmt.Errorf("%w: request %s holds a lock, not a leadership", recipes.ErrInvalid, c.id), nil)
	}
	err = leadership.Acknowledge(ctx, r.GetData())
	ss.claims.judge(c, err)
	return &pb.AcknowledgeResponse{}, wire.ToStatus(err, nil)
}

// election finds an election; how it waits does not matter to those who look.
func (s *Server) election(handle, path string) (*session, recipes.Election, error) {
	ss, err := s.session(handle)
	if err != nil {
		return nil, nil, err
	}
	e, err := ss.Election(path, recipes.ElectionConfig{})
	return ss, e, err
}

func (s electionService) Leader(ctx context.Context, r *pb.LeaderRequest) (*pb.LeaderResponse, error) {
	_, e, err := s.election(r.GetSession(), r.GetPath())
	if err != nil {
		return nil, wire.ToStatus(err, nil)
	}
	l, err := e.Leader(ctx)
	if err != nil {
		return nil, wire.ToStatus(err, nil)
	}
	return &pb.LeaderResponse{Leader: wire.ToLeader(l)}, nil
}

func (s electionService) Acknowledged(ctx context.Context, r *pb.AcknowledgedRequest) (*pb.AcknowledgedResponse, error) {
	_, e, err := s.election(r.GetSession(), r.GetPath())
	if err != nil {
		return nil, wire.ToStatus(err, nil)
	}
	l, err := e.Acknowledged(ctx)
	if err != nil {
		return nil, wire.ToStatus(err, nil)
	}
	return &pb.AcknowledgedResponse{Leader: wire.ToLeader(l)}, nil
}

func (s electionService) Observe(r *pb.ObserveRequest, st grpc.ServerStreamingServer[pb.ObserveResponse]) error {
	_, e, err := s.election(r.GetSession(), r.GetPath())
	if err != nil {
		return wire.ToStatus(err, nil)
	}
	leaders, err := e.Observe(st.Context())
	if err != nil {
		return wire.ToStatus(err, nil)
	}
	for l := range leaders { // closed when the stream or the session ends
		if err := st.Send(&pb.ObserveResponse{Leader: wire.ToLeader(l)}); err != nil {
			return err
		}
	}
	return nil
}

func (s electionService) Candidates(ctx context.Context, r *pb.CandidatesRequest) (*pb.CandidatesResponse, error) {
	_, e, err := s.election(r.GetSession(), r.GetPath())
	if err != nil {
		return nil, wire.ToStatus(err, nil)
	}
	line, err := e.Candidates(ctx)
	if err != nil {
		return nil, wire.ToStatus(err, nil)
	}
	return &pb.CandidatesResponse{Candidates: wire.ToContenders(line)}, nil
}
