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

func (s barrierService) barrier(handle, path string) (recipes.Barrier, error) {
	ss, err := s.session(handle)
	if err != nil {
		return nil, err
	}
	return ss.Barrier(path)
}

func (s barrierService) SetBarrier(ctx context.Context, r *pb.SetBarrierRequest) (*pb.SetBarrierResponse, error) {
	b, err := s.barrier(r.GetSession(), r.GetPath())
	if err == nil {
		err = b.Set(ctx, r.GetData())
	}
	return &pb.SetBarrierResponse{}, err
}

func (s barrierService) RemoveBarrier(ctx context.Context, r *pb.RemoveBarrierRequest) (*pb.RemoveBarrierResponse, error) {
	b, err := s.barrier(r.GetSession(), r.GetPath())
	if err == nil {
		err = b.Remove(ctx)
	}
	return &pb.RemoveBarrierResponse{}, err
}

func (s barrierService) WaitBarrier(ctx context.Context, r *pb.WaitBarrierRequest) (*pb.WaitBarrierResponse, error) {
	b, err := s.barrier(r.GetSession(), r.GetPath())
	if err == nil {
		err = b.Wait(ctx)
	}
	return &pb.WaitBarrierResponse{}, err
}

func (s barrierService) GetBarrier(ctx context.Context, r *pb.GetBarrierRequest) (*pb.GetBarrierResponse, error) {
	b, err := s.barrier(r.GetSession(), r.GetPath())
	if err != nil {
		return nil, err
	}
	set, err := b.IsSet(ctx)
	return &pb.GetBarrierResponse{Set: set}, err
}
