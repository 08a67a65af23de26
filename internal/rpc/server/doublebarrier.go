package server

import (
	"context"

	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

type doubleBarrierService struct {
	pb.UnimplementedDoubleBarrierServiceServer
	*Server
}

func (s doubleBarrierService) EnterDoubleBarrier(ctx context.Context, r *pb.EnterDoubleBarrierRequest) (*pb.EnterDoubleBarrierResponse, error) {
	c, err := s.contend(ctx, r, false, func(ctx context.Context, ss *session, _ func(recipes.Place)) (*held, error) {
		b, err := ss.DoubleBarrier(r.GetPath(), recipes.DoubleBarrierConfig{Size: int(r.GetSize())})
		if err != nil {
			return nil, err
		}
		p, err := b.Enter(ctx, r.GetData())
		if err != nil {
			return nil, err
		}
		return &held{Grant: p, giveBack: takeOut(p)}, nil
	})
	if err != nil {
		return nil, err
	}
	p, err := passage(c)
	if err != nil {
		return nil, err
	}
	return &pb.EnterDoubleBarrierResponse{Grant: toGrant(c), Members: p.Members()}, nil
}

// takeOut leaves without waiting for the others.
func takeOut(p recipes.Passage) func(context.Context) error {
	return func(ctx context.Context) error {
		ctx, cancel := context.WithCancel(ctx)
		cancel()
		return p.Leave(ctx)
	}
}

// passage returns the double barrier's member that a ticket holds.
func passage(c *ticket) (recipes.Passage, error) {
	return as[recipes.Passage](c, "no place in a double barrier")
}

func (s doubleBarrierService) LeaveDoubleBarrier(ctx context.Context, r *pb.LeaveDoubleBarrierRequest) (*pb.LeaveDoubleBarrierResponse, error) {
	ss, c, err := s.granted(r)
	if err != nil {
		return nil, err
	}
	p, err := passage(c)
	if err != nil {
		return nil, err
	}
	err = p.Leave(ctx)
	ss.tickets.finished(c)
	return &pb.LeaveDoubleBarrierResponse{}, err
}
