package client

import (
	"context"
	"fmt"

	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

type counter struct{ recipe }

func (s *session) Counter(path string, cfg recipes.CounterConfig) (recipes.Counter, error) {
	r, err := s.at("counter", path, cfg.Dialect)
	if err != nil {
		return nil, err
	}
	if path == "/" {
		return nil, fmt.Errorf("counter: %w: the root cannot be written", recipes.ErrInvalid)
	}
	return counter{r}, nil
}

func (c counter) Get(ctx context.Context) (int64, error) {
	return read(ctx, c.recipe, c.s.counters.GetCount,
		&pb.GetCountRequest{Session: c.s.handle, Path: c.path, Dialect: c.dialect}, (*pb.GetCountResponse).GetCount)
}

func (c counter) Add(ctx context.Context, delta int64) (int64, error) {
	return write(ctx, c.recipe, once, c.s.counters.AddCount,
		&pb.AddCountRequest{Session: c.s.handle, Path: c.path, Delta: delta, Dialect: c.dialect}, (*pb.AddCountResponse).GetCount)
}

type latch struct {
	recipe
	count int64
}

func (s *session) Latch(path string, cfg recipes.LatchConfig) (recipes.Latch, error) {
	r, err := s.at("latch", path, "")
	if err == nil {
		err = cfg.Validate()
	}
	if err != nil {
		return nil, err
	}
	return latch{r, cfg.Count}, nil
}

func (l latch) Count(ctx context.Context) (int64, error) {
	return read(ctx, l.recipe, l.s.latches.GetLatch,
		&pb.GetLatchRequest{Session: l.s.handle, Path: l.path, Count: l.count}, (*pb.GetLatchResponse).GetRemaining)
}

func (l latch) CountDown(ctx context.Context) (int64, error) {
	return write(ctx, l.recipe, once, l.s.latches.CountDownLatch,
		&pb.CountDownLatchRequest{Session: l.s.handle, Path: l.path, Count: l.count}, (*pb.CountDownLatchResponse).GetRemaining)
}

func (l latch) Wait(ctx context.Context) error {
	_, err := read(ctx, l.recipe, l.s.latches.WaitLatch, &pb.WaitLatchRequest{Session: l.s.handle, Path: l.path, Count: l.count}, nothing)
	return err
}
