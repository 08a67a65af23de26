package server

import (
	"context"

	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

type semaphoreService struct {
	pb.UnimplementedSemaphoreServiceServer
	*Server
}

func (s semaphoreService) AcquirePermit(ctx context.Context, r *pb.AcquirePermitRequest) (*pb.AcquirePermitResponse, error) {
	c, err := s.contend(ctx, r, r.GetAnnounce(), func(ctx context.Context, ss *session, joined func(recipes.Place)) (*held, error) {
		semaphore, err := ss.Semaphore(r.GetPath(), recipes.SemaphoreConfig{
			Permits: int(r.GetPermits()), Strategy: recipes.Strategy(r.GetStrategy()), Data: r.GetData(), Joined: joined,
			Unconfirmed: r.GetUnconfirmed(),
		})
		if err != nil {
			return nil, err
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
