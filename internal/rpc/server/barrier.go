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

func (s barrierService) PlaceBarrier(ctx context.Context, r *pb.PlaceBarrierRequest) (*pb.PlaceBarrierResponse, error) {
	b, err := s.barrier(r.GetSession(), r.GetPath())
	if err == nil {
		err = b.Set(ctx, r.GetData())
	}
	return &pb.PlaceBarrierResponse{}, err
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

func (s barrierService) LookAtBarrier(ctx context.Context, r *pb.LookAtBarrierRequest) (*pb.LookAtBarrierResponse, error) {
	b, err := s.barrier(r.GetSession(), r.GetPath())
	if err != nil {
		return nil, err
	}
	placed, err := b.IsSet(ctx)
	return &pb.LookAtBarrierResponse{Placed: placed}, err
}
