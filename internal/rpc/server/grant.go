package server

import (
	"context"
	"errors"
	"fmt"

	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

type grantService struct {
	pb.UnimplementedGrantServiceServer
	*Server
}

// request is a call that asks for a grant, or is about one.
type request interface {
	GetSession() string
	GetRequestId() string
}

// granted finds the grant that a request is about.
func (s *Server) granted(r request) (*session, *ticket, error) {
	ss, err := s.session(r.GetSession())
	if err != nil {
		return nil, nil, err
	}
	c, err := ss.tickets.granted(r.GetRequestId())
	return ss, c, err
}

// as returns what a ticket holds as a G. what says, in the negative, what it should
// be.
func as[G any](c *ticket, what string) (G, error) {
	g, ok := c.grant.Grant.(G)
	if !ok {
		return g, fmt.Errorf("%w: request %s holds %s", recipes.ErrInvalid, c.id, what)
	}
	return g, nil
}

func (s grantService) Release(ctx context.Context, r *pb.ReleaseRequest) (*pb.ReleaseResponse, error) {
	ss, c, err := s.granted(r)
	if err != nil {
		return nil, err
	}
	err = c.grant.giveBack(ctx)
	ss.tickets.finished(c)
	return &pb.ReleaseResponse{}, err
}

func (s grantService) Write(ctx context.Context, r *pb.WriteRequest) (*pb.WriteResponse, error) {
	ss, c, err := s.granted(r)
	if err != nil {
		return nil, err
	}
	err = c.grant.Write(ctx, wire.Ops(r.GetOps())...)
	ss.tickets.judge(c, err)
	return &pb.WriteResponse{}, err
}

// judge notices a grant that turned out not to stand.
func (ts *tickets) judge(c *ticket, err error) {
	if errors.Is(err, recipes.ErrNotHeld) {
		ts.finished(c)
	}
}

func (s grantService) Watch(_ context.Context, r *pb.WatchRequest) (*pb.WatchResponse, error) {
	ss, c, err := s.granted(r)
	if err != nil {
		return nil, err
	}
	ss.tickets.watch(c)
	return &pb.WatchResponse{}, nil
}

func (s grantService) Abandon(_ context.Context, r *pb.AbandonRequest) (*pb.AbandonResponse, error) {
	ss, err := s.session(r.GetSession())
	if err != nil {
		return nil, err
	}
	ss.tickets.abandon(r.GetRequestId())
	return &pb.AbandonResponse{}, nil
}
