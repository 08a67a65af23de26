package client

import (
	"context"
	"fmt"

	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

type counter struct {
	s    *session
	rpc  pb.CounterServiceClient
	path string

	dialect string // as wire.ToDialect has it
}

func (s *session) Counter(path string, cfg recipes.CounterConfig) (recipes.Counter, error) {
	if err := recipes.ValidatePath(path); err != nil {
		return nil, err
	}
	if path == "/" {
		return nil, fmt.Errorf("counter: %w: the root cannot be written", recipes.ErrInvalid)
	}
	dialect, err := wire.ToDialect(cfg.Dialect)
	if err != nil {
		return nil, fmt.Errorf("counter %s: %w", path, err)
	}
	return &counter{s: s, rpc: pb.NewCounterServiceClient(s.conn), path: path, dialect: dialect}, nil
}

func (c *counter) Path() string { return c.path }

func (c *counter) Get(ctx context.Context) (int64, error) {
	if err := c.s.hasDialect(ctx, "counter "+c.path, c.dialect); err != nil {
		return 0, err
	}
	return query(ctx, c.s, "counter "+c.path, func(ctx context.Context) (int64, error) {
		r, err := c.rpc.GetCount(ctx, &pb.GetCountRequest{Session: c.s.handle, Path: c.path, Dialect: c.dialect})
		return r.GetCount(), err
	})
}

func (c *counter) Add(ctx context.Context, delta int64) (n int64, err error) {
	if err := c.s.hasDialect(ctx, "counter "+c.path, c.dialect); err != nil {
		return 0, err
	}
	err = c.s.change(ctx, "counter "+c.path, func(ctx context.Context) error {
		r, err := c.rpc.AddCount(ctx, &pb.AddCountRequest{Session: c.s.handle, Path: c.path, Delta: delta, Dialect: c.dialect})
		n = r.GetCount()
		return err
	})
	return n, err
}

type latch struct {
	s     *session
	rpc   pb.LatchServiceClient
	path  string
	count int64
}

func (s *session) Latch(path string, cfg recipes.LatchConfig) (recipes.Latch, error) {
	if err := recipes.ValidatePath(path); err != nil {
		return nil, err
	}
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return &latch{s: s, rpc: pb.NewLatchServiceClient(s.conn), path: path, count: cfg.Count}, nil
}

func (l *latch) Path() string { return l.path }

func (l *latch) Count(ctx context.Context) (int64, error) {
	return query(ctx, l.s, "latch "+l.path, func(ctx context.Context) (int64, error) {
		r, err := l.rpc.GetLatch(ctx, &pb.GetLatchRequest{Session: l.s.handle, Path: l.path, Count: l.count})
		return r.GetRemaining(), err
	})
}

func (l *latch) CountDown(ctx context.Context) (n int64, err error) {
	err = l.s.change(ctx, "latch "+l.path, func(ctx context.Context) error {
		r, err := l.rpc.CountDownLatch(ctx, &pb.CountDownLatchRequest{Session: l.s.handle, Path: l.path, Count: l.count})
		n = r.GetRemaining()
		return err
	})
	return n, err
}

func (l *latch) Wait(ctx context.Context) error {
	return l.s.call(ctx, "latch "+l.path, func(ctx context.Context) error {
		_, err := l.rpc.WaitLatch(ctx, &pb.WaitLatchRequest{Session: l.s.handle, Path: l.path, Count: l.count})
		return err
	})
}
