package server

import (
	"context"

	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

type counterService struct {
	pb.UnimplementedCounterServiceServer
	*Server
}

func counter(t target) (recipes.Counter, error) {
	return t.Counter(t.path, recipes.CounterConfig{Dialect: t.dialect})
}

func (s counterService) GetCount(ctx context.Context, r *pb.GetCountRequest) (*pb.GetCountResponse, error) {
	return with(s.Server, r, counter, func(c recipes.Counter) (*pb.GetCountResponse, error) {
		n, err := c.Get(ctx)
		return &pb.GetCountResponse{Count: n}, err
	})
}

func (s counterService) AddCount(ctx context.Context, r *pb.AddCountRequest) (*pb.AddCountResponse, error) {
	return with(s.Server, r, counter, func(c recipes.Counter) (*pb.AddCountResponse, error) {
		n, err := c.Add(ctx, r.GetDelta())
		return &pb.AddCountResponse{Count: n}, err
	})
}

type latchService struct {
	pb.UnimplementedLatchServiceServer
	*Server
}

// latch returns a function that makes the recipe for a request.
func latch(r interface{ GetCount() int64 }) func(target) (recipes.Latch, error) {
	return func(t target) (recipes.Latch, error) {
		return t.Latch(t.path, recipes.LatchConfig{Count: r.GetCount()})
	}
}

func (s latchService) GetLatch(ctx context.Context, r *pb.GetLatchRequest) (*pb.GetLatchResponse, error) {
	return with(s.Server, r, latch(r), func(l recipes.Latch) (*pb.GetLatchResponse, error) {
		n, err := l.Count(ctx)
		return &pb.GetLatchResponse{Remaining: n}, err
	})
}

func (s latchService) CountDownLatch(ctx context.Context, r *pb.CountDownLatchRequest) (*pb.CountDownLatchResponse, error) {
	return with(s.Server, r, latch(r), func(l recipes.Latch) (*pb.CountDownLatchResponse, error) {
		n, err := l.CountDown(ctx)
		return &pb.CountDownLatchResponse{Remaining: n}, err
	})
}

func (s latchService) WaitLatch(ctx context.Context, r *pb.WaitLatchRequest) (*pb.WaitLatchResponse, error) {
	return with(s.Server, r, latch(r), func(l recipes.Latch) (*pb.WaitLatchResponse, error) {
		return &pb.WaitLatchResponse{}, l.Wait(ctx)
	})
}
