package server

import (
	"context"

	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

type lockService struct {
	pb.UnimplementedLockServiceServer
	*Server
}

func (s lockService) Acquire(ctx context.Context, r *pb.AcquireRequest) (*pb.AcquireResponse, error) {
	c, err := s.contend(ctx, r, r.GetAnnounce(), func(ctx context.Context, ss *session, joined func(recipes.Place)) (*held, error) {
		lock, err := ss.Lock(r.GetPath(), recipes.LockConfig{
			Strategy: recipes.Strategy(r.GetStrategy()), Data: r.GetData(), Joined: joined,
		})
		if err != nil {
			return nil, err
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
