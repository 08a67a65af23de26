package server

import (
	"context"

	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

type barrierService struct {
	pb.UnimplementedBarrierServiceServer
	*Server
}

func barrier(t target) (recipes.Barrier, error) { return t.Barrier(t.path) }

func (s barrierService) SetBarrier(ctx context.Context, r *pb.SetBarrierRequest) (*pb.SetBarrierResponse, error) {
	return with(s.Server, r, barrier, func(b recipes.Barrier) (*pb.SetBarrierResponse, error) {
		return &pb.SetBarrierResponse{}, b.Set(ctx, r.GetData())
	})
}

func (s barrierService) RemoveBarrier(ctx context.Context, r *pb.RemoveBarrierRequest) (*pb.RemoveBarrierResponse, error) {
	return with(s.Server, r, barrier, func(b recipes.Barrier) (*pb.RemoveBarrierResponse, error) {
		return &pb.RemoveBarrierResponse{}, b.Remove(ctx)
	})
}

func (s barrierService) WaitBarrier(ctx context.Context, r *pb.WaitBarrierRequest) (*pb.WaitBarrierResponse, error) {
	return with(s.Server, r, barrier, func(b recipes.Barrier) (*pb.WaitBarrierResponse, error) {
		return &pb.WaitBarrierResponse{}, b.Wait(ctx)
	})
}

func (s barrierService) GetBarrier(ctx context.Context, r *pb.GetBarrierRequest) (*pb.GetBarrierResponse, error) {
	return with(s.Server, r, barrier, func(b recipes.Barrier) (*pb.GetBarrierResponse, error) {
		set, err := b.IsSet(ctx)
		return &pb.GetBarrierResponse{Set: set}, err
	})
}
