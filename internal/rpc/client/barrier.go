package client

import (
	"context"
	"fmt"

	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

type barrier struct {
	s    *session
	rpc  pb.BarrierServiceClient
	path string
}

func (s *session) Barrier(path string) (recipes.Barrier, error) {
	if err := recipes.ValidatePath(path); err != nil {
		return nil, err
	}
	if path == "/" {
		return nil, fmt.Errorf("barrier: %w: the root always exists, so this barrier could never be removed", recipes.ErrInvalid)
	}
	return &barrier{s: s, rpc: pb.NewBarrierServiceClient(s.conn), path: path}, nil
}

func (b *barrier) Path() string { return b.path }

func (b *barrier) what() string { return "barrier " + b.path }

func (b *barrier) Set(ctx context.Context, data []byte) error {
	return b.s.change(ctx, b.what(), func(ctx context.Context) error {
		_, err := b.rpc.SetBarrier(ctx, &pb.SetBarrierRequest{Session: b.s.handle, Path: b.path, Data: data})
		return err
	})
}

func (b *barrier) Remove(ctx context.Context) error {
	return b.s.change(ctx, b.what(), func(ctx context.Context) error {
		_, err := b.rpc.RemoveBarrier(ctx, &pb.RemoveBarrierRequest{Session: b.s.handle, Path: b.path})
		return err
	})
}

func (b *barrier) Wait(ctx context.Context) error {
	return b.s.call(ctx, b.what(), func(ctx context.Context) error {
		_, err := b.rpc.WaitBarrier(ctx, &pb.WaitBarrierRequest{Session: b.s.handle, Path: b.path})
		return err
	})
}

func (b *barrier) IsSet(ctx context.Context) (bool, error) {
	return query(ctx, b.s, b.what(), func(ctx context.Context) (bool, error) {
		r, err := b.rpc.GetBarrier(ctx, &pb.GetBarrierRequest{Session: b.s.handle, Path: b.path})
		return r.GetSet(), err
	})
}
