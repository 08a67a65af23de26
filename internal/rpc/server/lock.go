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
	c, err := s.contend(ctx, r, r.GetAnnounce(), func(ctx context.Context, t target, joined func(recipes.Place)) (*grant, error) {
		lock, err := t.Lock(t.path, recipes.LockConfig{
			Dialect: t.dialect, Strategy: recipes.Strategy(r.GetStrategy()), Data: r.GetData(), Joined: joined,
		})
		if err != nil {
			return nil, err
		}
		ask := lock.Acquire
		if r.GetTry() {
			ask = lock.TryAcquire
		}
		return acquire(ctx, lock, r, ask, recipes.Hold.Release)
	})
	if err != nil {
		return nil, err
	}
	return &pb.AcquireResponse{Grant: toGrant(c), Place: toPlace(c)}, nil
}
