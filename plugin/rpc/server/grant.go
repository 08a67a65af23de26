package server

import (
	"context"
	"errors"

	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/plugin/rpc/wire"
	"github.com/zkrecipes/zkrecipes/recipes"
)

type grantService struct {
	pb.UnimplementedGrantServiceServer
	*Server
}

// granted finds a grant by the names of a request.
func (s *Server) granted(handle, id string) (*session, *claim, error) {
	ss, err := s.session(handle)
	if err != nil {
		return nil, nil, err
	}
	c, err := ss.claims.granted(id)
	return ss, c, err
}

func (s grantService) Release(ctx context.Context, r *pb.ReleaseRequest) (*pb.ReleaseResponse, error) {
	ss, c, err := s.granted(r.GetSession(), r.GetRequestId())
	if err != nil {
		return nil, wire.ToStatus(err, nil)
	}
	err = c.grant.giveBack(ctx)
	ss.claims.finished(c)
	return &pb.ReleaseResponse{}, wire.ToStatus(err, nil)
}

func (s grantService) Write(ctx context.Context, r *pb.WriteRequest) (*pb.WriteResponse, error) {
	ss, c, err := s.granted(r.GetSession(), r.GetRequestId())
	if err != nil {
		return nil, wire.ToStatus(err, nil)
	}
	err = c.grant.Write(ctx, wire.Ops(r.GetOps())...)
	ss.claims.judge(c, err)
	return &pb.WriteResponse{}, wire.ToStatus(err, nil)
}

// judge notices a grant that turned out not to stand.
func (cs *claims) judge(c *claim, err error) {
	if errors.Is(err, recipes.ErrNotHeld) {
		cs.finished(c)
	}
}

func (s grantService) Watch(_ context.Context, r *pb.WatchRequest) (*pb.WatchResponse, error) {
	ss, c, err := s.granted(r.GetSession(), r.GetRequestId())
	if err != nil {
		return nil, wire.ToStatus(err, nil)
	}
	ss.claims.watch(c)
	return &pb.WatchResponse{}, nil
}

func (s grantService) Abandon(_ context.Context, r *pb.AbandonRequest) (*pb.AbandonResponse, error) {
	ss, err := s.session(r.GetSession())
	if err != nil {
		return nil, wire.ToStatus(err, nil)
	}
	ss.claims.abandon(r.GetRequestId())
	return &pb.AbandonResponse{}, nil
}
