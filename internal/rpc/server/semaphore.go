package server

import (
	"context"

	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

type semaphoreService struct {
	pb.UnimplementedSemaphoreServiceServer
	*Server
}

func (s semaphoreService) AcquirePermit(ctx context.Context, r *pb.AcquirePermitRequest) (*pb.AcquirePermitResponse, error) {
	c, err := s.contend(ctx, r, r.GetAnnounce(), func(ctx context.Context, ss *session, joined func(recipes.Place)) (*held, error) {
		dialect, err := wire.Dialect(r.GetDialect())
		if err != nil {
			return nil, err
		}
		semaphore, err := ss.Semaphore(r.GetPath(), recipes.SemaphoreConfig{
			Dialect: dialect,
			Permits: int(r.GetPermits()), Strategy: recipes.Strategy(r.GetStrategy()), Data: r.GetData(), Joined: joined,
		})
		if err != nil {
			return nil, err
		}
		if had := r.GetResumed(); had != nil {
			return holding(takeUp[recipes.Hold](ctx, semaphore, had, r.GetTry()))
		}
		if r.GetTry() {
			return holding(semaphore.TryAcquire(ctx))
		}
		return holding(semaphore.Acquire(ctx))
	})
	if err != nil {
		return nil, err
	}
	return &pb.AcquirePermitResponse{Grant: toGrant(c), Place: toPlace(c)}, nil
}
