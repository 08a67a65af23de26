package server

import (
	"context"

	"google.golang.org/grpc"

	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

type configurationService struct {
	pb.UnimplementedConfigurationServiceServer
	*Server
}

func configuration(t target) (recipes.Configuration, error) { return t.Configuration(t.path) }

func (s configurationService) GetKey(ctx context.Context, r *pb.GetKeyRequest) (*pb.GetKeyResponse, error) {
	e, err := with(s.Server, r, configuration, func(c recipes.Configuration) (recipes.Entry, error) { return c.Get(ctx, r.GetKey()) })
	return &pb.GetKeyResponse{Entry: wire.ToEntry(e)}, err
}

func (s configurationService) SetKey(ctx context.Context, r *pb.SetKeyRequest) (*pb.SetKeyResponse, error) {
	revision, err := with(s.Server, r, configuration, func(c recipes.Configuration) (recipes.Revision, error) {
		return c.Set(ctx, r.GetKey(), r.GetValue(), recipes.Revision(r.GetExpected()))
	})
	return &pb.SetKeyResponse{Revision: int64(revision)}, err
}

func (s configurationService) DeleteKey(ctx context.Context, r *pb.DeleteKeyRequest) (*pb.DeleteKeyResponse, error) {
	return &pb.DeleteKeyResponse{}, do(s.Server, r, configuration, func(c recipes.Configuration) error {
		return c.Delete(ctx, r.GetKey(), recipes.Revision(r.GetExpected()))
	})
}

func (s configurationService) SnapshotKeys(ctx context.Context, r *pb.SnapshotKeysRequest) (*pb.SnapshotKeysResponse, error) {
	entries, err := with(s.Server, r, configuration, func(c recipes.Configuration) ([]recipes.Entry, error) { return c.Snapshot(ctx) })
	return &pb.SnapshotKeysResponse{Entries: wire.Each(entries, wire.ToEntry)}, err
}

func (s configurationService) WatchKey(r *pb.WatchKeyRequest, st grpc.ServerStreamingServer[pb.WatchKeyResponse]) error {
	entries, err := with(s.Server, r, configuration, func(c recipes.Configuration) (<-chan recipes.Entry, error) {
		return c.Watch(st.Context(), r.GetKey())
	})
	return forward(st, entries, err, func(e recipes.Entry) *pb.WatchKeyResponse {
		return &pb.WatchKeyResponse{Entry: wire.ToEntry(e)}
	})
}

func (s configurationService) WatchKeys(r *pb.WatchKeysRequest, st grpc.ServerStreamingServer[pb.WatchKeysResponse]) error {
	trees, err := with(s.Server, r, configuration, func(c recipes.Configuration) (<-chan []recipes.Entry, error) {
		return c.WatchTree(st.Context())
	})
	return forward(st, trees, err, func(es []recipes.Entry) *pb.WatchKeysResponse {
		return &pb.WatchKeysResponse{Entries: wire.Each(es, wire.ToEntry)}
	})
}

type counterService struct {
	pb.UnimplementedCounterServiceServer
	*Server
}

func counter(t target) (recipes.Counter, error) {
	return t.Counter(t.path, recipes.CounterConfig{Dialect: t.dialect})
}

func (s counterService) GetCount(ctx context.Context, r *pb.GetCountRequest) (*pb.GetCountResponse, error) {
	n, err := with(s.Server, r, counter, func(c recipes.Counter) (int64, error) { return c.Get(ctx) })
	return &pb.GetCountResponse{Count: n}, err
}

func (s counterService) AddCount(ctx context.Context, r *pb.AddCountRequest) (*pb.AddCountResponse, error) {
	n, err := with(s.Server, r, counter, func(c recipes.Counter) (int64, error) { return c.Add(ctx, r.GetDelta()) })
	return &pb.AddCountResponse{Count: n}, err
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
	n, err := with(s.Server, r, latch(r), func(l recipes.Latch) (int64, error) { return l.Count(ctx) })
	return &pb.GetLatchResponse{Remaining: n}, err
}

func (s latchService) CountDownLatch(ctx context.Context, r *pb.CountDownLatchRequest) (*pb.CountDownLatchResponse, error) {
	n, err := with(s.Server, r, latch(r), func(l recipes.Latch) (int64, error) { return l.CountDown(ctx) })
	return &pb.CountDownLatchResponse{Remaining: n}, err
}

func (s latchService) WaitLatch(ctx context.Context, r *pb.WaitLatchRequest) (*pb.WaitLatchResponse, error) {
	return &pb.WaitLatchResponse{}, do(s.Server, r, latch(r), func(l recipes.Latch) error { return l.Wait(ctx) })
}
