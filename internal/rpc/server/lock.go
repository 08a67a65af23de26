package server

import (
	"context"

	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

type lockService struct {
	pb.UnimplementedLockServiceServer
	*Server
}

func (s lockService) Acquire(ctx context.Context, r *pb.AcquireRequest) (*pb.AcquireResponse, error) {
	c, err := s.contend(ctx, r, r.GetAnnounce(), func(ctx context.Context, ss *session, joined func(recipes.Place)) (*held, error) {
		dialect, err := wire.Dialect(r.GetDialect())
		if err != nil {
			return nil, err
		}
		lock, err := ss.Lock(r.GetPath(), recipes.LockConfig{
			Dialect: dialect, Strategy: recipes.Strategy(r.GetStrategy()), Data: r.GetData(), Joined: joined,
		})
		if err != nil {
			return nil, err
		}
		if had := r.GetResumed(); had != nil {
			return holding(takeUp[recipes.Hold](ctx, lock, had, r.GetTry()))
		}
		if r.GetTry() {
			return holding(lock.TryAcquire(ctx))
		}
		return holding(lock.Acquire(ctx))
	})
	if err != nil {
		return nil, err
	}
	return &pb.AcquireResponse{Grant: toGrant(c), Place: toPlace(c)}, nil
}
