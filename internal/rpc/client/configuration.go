package client

import (
	"context"
	"fmt"
	"path"

	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

type configuration struct{ recipe }

func (s *session) Configuration(path string) (recipes.Configuration, error) {
	r, err := s.at("configuration", path, "", notRoot(path, "the root holds ZooKeeper's own nodes"))
	if err != nil {
		return nil, err
	}
	return configuration{r}, nil
}

// key returns the recipe for a call about one key.
func (c configuration) key(key string) recipe { return c.about(fmt.Sprintf("key %q of %s", key, c)) }

func (c configuration) Get(ctx context.Context, key string) (recipes.Entry, error) {
	if err := recipes.ValidateKey(key); err != nil {
		return recipes.Entry{}, err
	}
	return read(ctx, c.key(key), c.s.configurations.GetKey, &pb.GetKeyRequest{Session: c.s.handle, Path: c.path, Key: key},
		func(a *pb.GetKeyResponse) recipes.Entry { return wire.Entry(a.GetEntry()) })
}

func (c configuration) Set(ctx context.Context, key string, value []byte, expected recipes.Revision) (recipes.Revision, error) {
	if err := recipes.ValidateKey(key); err != nil {
		return 0, err
	}
	return write(ctx, c.key(key), once, c.s.configurations.SetKey, &pb.SetKeyRequest{
		Session: c.s.handle, Path: c.path, Key: key, Value: value, Expected: int64(expected),
	}, func(a *pb.SetKeyResponse) recipes.Revision { return recipes.Revision(a.GetRevision()) })
}

func (c configuration) Delete(ctx context.Context, key string, expected recipes.Revision) error {
	if err := recipes.ValidateKey(key); err != nil {
		return err
	}
	return change(ctx, c.key(key), once, c.s.configurations.DeleteKey,
		&pb.DeleteKeyRequest{Session: c.s.handle, Path: c.path, Key: key, Expected: int64(expected)})
}

func (c configuration) Key(op recipes.Op) (recipes.Op, error) {
	if err := recipes.ValidateKey(op.Path); err != nil {
		return recipes.Op{}, err
	}
	op.Path = path.Join(c.path, op.Path)
	return op, op.Validate()
}

func (c configuration) Snapshot(ctx context.Context) ([]recipes.Entry, error) {
	return read(ctx, c.recipe, c.s.configurations.SnapshotKeys, &pb.SnapshotKeysRequest{Session: c.s.handle, Path: c.path},
		func(a *pb.SnapshotKeysResponse) []recipes.Entry { return wire.Each(a.GetEntries(), wire.Entry) })
}

func (c configuration) Watch(ctx context.Context, key string) (<-chan recipes.Entry, error) {
	if err := recipes.ValidateKey(key); err != nil {
		return nil, err
	}
	return follow(ctx, c.key(key), c.s.configurations.WatchKey, &pb.WatchKeyRequest{Session: c.s.handle, Path: c.path, Key: key},
		func(m *pb.WatchKeyResponse) recipes.Entry { return wire.Entry(m.GetEntry()) })
}

func (c configuration) WatchTree(ctx context.Context) (<-chan []recipes.Entry, error) {
	return follow(ctx, c.recipe, c.s.configurations.WatchKeys, &pb.WatchKeysRequest{Session: c.s.handle, Path: c.path},
		func(m *pb.WatchKeysResponse) []recipes.Entry { return wire.Each(m.GetEntries(), wire.Entry) })
}

type counter struct{ recipe }

func (s *session) Counter(path string, cfg recipes.CounterConfig) (recipes.Counter, error) {
	r, err := s.at("counter", path, cfg.Dialect, notRoot(path, "the root cannot be written"))
	if err != nil {
		return nil, err
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
	r, err := s.at("latch", path, "", cfg.Validate())
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
