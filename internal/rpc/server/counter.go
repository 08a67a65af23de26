package server

import (
	"context"

	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

type counterService struct {
	pb.UnimplementedCounterServiceServer
	*Server
}

func (s counterService) counter(r interface {
	GetSession() string
	GetPath() string
	GetDialect() string
}) (recipes.Counter, error) {
	ss, err := s.session(r.GetSession())
	if err != nil {
		return nil, err
	}
	dialect, err := wire.Dialect(r.GetDialect())
	if err != nil {
		return nil, err
	}
	return ss.Counter(r.GetPath(), recipes.CounterConfig{Dialect: dialect})
}

func (s counterService) GetCount(ctx context.Context, r *pb.GetCountRequest) (*pb.GetCountResponse, error) {
	c, err := s.counter(r)
	if err != nil {
		return nil, err
	}
	n, err := c.Get(ctx)
	return &pb.GetCountResponse{Count: n}, err
}

func (s counterService) AddCount(ctx context.Context, r *pb.AddCountRequest) (*pb.AddCountResponse, error) {
	c, err := s.counter(r)
	if err != nil {
		return nil, err
	}
	n, err := c.Add(ctx, r.GetDelta())
	return &pb.AddCountResponse{Count: n}, err
}

type latchService struct {
	pb.UnimplementedLatchServiceServer
	*Server
}

func (s latchService) latch(handle, path string, count int64) (recipes.Latch, error) {
	ss, err := s.session(handle)
	if err != nil {
		return nil, err
	}
	return ss.Latch(path, recipes.LatchConfig{Count: count})
}

func (s latchService) GetLatch(ctx context.Context, r *pb.GetLatchRequest) (*pb.GetLatchResponse, error) {
	l, err := s.latch(r.GetSession(), r.GetPath(), r.GetCount())
	if err != nil {
		return nil, err
	}
	n, err := l.Count(ctx)
	return &pb.GetLatchResponse{Remaining: n}, err
}

func (s latchService) CountDownLatch(ctx context.Context, r *pb.CountDownLatchRequest) (*pb.CountDownLatchResponse, error) {
	l, err := s.latch(r.GetSession(), r.GetPath(), r.GetCount())
	if err != nil {
		return nil, err
	}
	n, err := l.CountDown(ctx)
	return &pb.CountDownLatchResponse{Remaining: n}, err
}

func (s latchService) WaitLatch(ctx context.Context, r *pb.WaitLatchRequest) (*pb.WaitLatchResponse, error) {
	l, err := s.latch(r.GetSession(), r.GetPath(), r.GetCount())
	if err == nil {
		err = l.Wait(ctx)
	}
	return &pb.WaitLatchResponse{}, err
}
