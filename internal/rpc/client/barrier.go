package client

import (
	"context"
	"fmt"

	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

type barrier struct{ recipe }

func (s *session) Barrier(path string) (recipes.Barrier, error) {
	r, err := s.at("barrier", path, "")
	if err != nil {
		return nil, err
	}
	if path == "/" {
		return nil, fmt.Errorf("barrier: %w: the root always exists, so this barrier could never be removed", recipes.ErrInvalid)
	}
	return barrier{r}, nil
}

func (b barrier) Set(ctx context.Context, data []byte) error {
	_, err := write(ctx, b.recipe, once, b.s.barriers.SetBarrier, &pb.SetBarrierRequest{Session: b.s.handle, Path: b.path, Data: data}, nothing)
	return err
}

func (b barrier) Remove(ctx context.Context) error {
	_, err := write(ctx, b.recipe, once, b.s.barriers.RemoveBarrier, &pb.RemoveBarrierRequest{Session: b.s.handle, Path: b.path}, nothing)
	return err
}

func (b barrier) Wait(ctx context.Context) error {
	_, err := read(ctx, b.recipe, b.s.barriers.WaitBarrier, &pb.WaitBarrierRequest{Session: b.s.handle, Path: b.path}, nothing)
	return err
}

func (b barrier) IsSet(ctx context.Context) (bool, error) {
	return read(ctx, b.recipe, b.s.barriers.GetBarrier, &pb.GetBarrierRequest{Session: b.s.handle, Path: b.path}, (*pb.GetBarrierResponse).GetSet)
}
