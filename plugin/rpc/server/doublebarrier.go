package server

import (
	"context"
	"fmt"

	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/plugin/rpc/wire"
	"github.com/zkrecipes/zkrecipes/recipes"
)

type doubleBarrierService struct {
	pb.UnimplementedDoubleBarrierServiceServer
	*Server
}

func (s doubleBarrierService) EnterDoubleBarrier(ctx context.Context, r *pb.EnterDoubleBarrierRequest) (*pb.EnterDoubleBarrierResponse, error) {
	ss, err := s.session(r.GetSession())
	if err != nil {
		return nil, wire.ToStatus(err, nil)
	}
	c, err := ss.claims.call(ctx, r.GetRequestId(), false, ss.enterDoubleBarrier(r))
	if err != nil {
		return nil, wire.ToStatus(err, nil)
	}
	p, err := passage(c)
	if err != nil {
		return nil, wire.ToStatus(err, nil)
	}
	return &pb.EnterDoubleBarrierResponse{Grant: toGrant(c), Members: p.Members()}, nil
}

func (ss *session) enterDoubleBarrier(r *pb.EnterDoubleBarrierRequest) contest {
	return func(ctx context.Context, _ func(recipes.Place)) (*held, error) {
		b, err := ss.DoubleBarrier(r.GetPath(), recipes.DoubleBarrierConfig{Size: int(r.GetSize())})
		if err != nil {
			return nil, err
		}
		p, err := b.Enter(ctx, r.GetData())
		if err != nil {
			return nil, err
		}
		return &held{Grant: p, giveBack: takeOut(p)}, nil
	}
}

// takeOut is leaving without waiting for the others.
func takeOut(p recipes.Passage) func(context.Context) error {
	return func(ctx context.Context) error {
		ctx, cancel := context.WithCancel(ctx)
		cancel()
		return p.Leave(ctx)
	}
}

// passage is the member that a claim has got.
func passage(c *claim) (recipes.Passage, error) {
	if p, ok := c.grant.Grant.(recipes.Passage); ok {
		return p, nil
	}
	return nil, fmt.Errorf("%w: request %s has entered no double barrier", recipes.ErrInvalid, c.id)
}

func (s doubleBarrierService) LeaveDoubleBarrier(ctx context.Context, r *pb.LeaveDoubleBarrierRequest) (*pb.LeaveDoubleBarrierResponse, error) {
	ss, c, err := s.granted(r.GetSession(), r.GetRequestId())
	if err != nil {
		return nil, wire.ToStatus(err, nil)
	}
	p, err := passage(c)
	if err != nil {
		return nil, wire.ToStatus(err, nil)
	}
	err = p.Leave(ctx)
	ss.claims.finished(c)
	return &pb.LeaveDoubleBarrierResponse{}, wire.ToStatus(err, nil)
}
