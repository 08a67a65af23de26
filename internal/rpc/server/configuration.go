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

// inConfiguration finds a configuration and does something with it.
func (s configurationService) inConfiguration(handle, path string, do func(recipes.Configuration) error) error {
	ss, err := s.session(handle)
	if err != nil {
		return err
	}
	c, err := ss.Configuration(path)
	if err != nil {
		return err
	}
	return do(c)
}

func (s configurationService) GetKey(ctx context.Context, r *pb.GetKeyRequest) (*pb.GetKeyResponse, error) {
	out := &pb.GetKeyResponse{}
	return out, s.inConfiguration(r.GetSession(), r.GetPath(), func(c recipes.Configuration) error {
		e, err := c.Get(ctx, r.GetKey())
		out.Entry = wire.ToEntry(e)
		return err
	})
}

func (s configurationService) SetKey(ctx context.Context, r *pb.SetKeyRequest) (*pb.SetKeyResponse, error) {
	out := &pb.SetKeyResponse{}
	return out, s.inConfiguration(r.GetSession(), r.GetPath(), func(c recipes.Configuration) error {
		revision, err := c.Set(ctx, r.GetKey(), r.GetValue(), recipes.Revision(r.GetExpected()))
		out.Revision = int64(revision)
		return err
	})
}

func (s configurationService) DeleteKey(ctx context.Context, r *pb.DeleteKeyRequest) (*pb.DeleteKeyResponse, error) {
	return &pb.DeleteKeyResponse{}, s.inConfiguration(r.GetSession(), r.GetPath(), func(c recipes.Configuration) error {
		return c.Delete(ctx, r.GetKey(), recipes.Revision(r.GetExpected()))
	})
}

func (s configurationService) SnapshotKeys(ctx context.Context, r *pb.SnapshotKeysRequest) (*pb.SnapshotKeysResponse, error) {
	out := &pb.SnapshotKeysResponse{}
	return out, s.inConfiguration(r.GetSession(), r.GetPath(), func(c recipes.Configuration) error {
		entries, err := c.Snapshot(ctx)
		out.Entries = wire.ToEntries(entries)
		return err
	})
}

func (s configurationService) WatchKey(r *pb.WatchKeyRequest, st grpc.ServerStreamingServer[pb.WatchKeyResponse]) error {
	var values <-chan recipes.Entry
	err := s.inConfiguration(r.GetSession(), r.GetPath(), func(c recipes.Configuration) (err error) {
		values, err = c.Watch(st.Context(), r.GetKey())
		return err
	})
	return forward(st, values, err, func(e recipes.Entry) *pb.WatchKeyResponse {
		return &pb.WatchKeyResponse{Entry: wire.ToEntry(e)}
	})
}

func (s configurationService) WatchKeys(r *pb.WatchKeysRequest, st grpc.ServerStreamingServer[pb.WatchKeysResponse]) error {
	var trees <-chan []recipes.Entry
	err := s.inConfiguration(r.GetSession(), r.GetPath(), func(c recipes.Configuration) (err error) {
		trees, err = c.WatchTree(st.Context())
		return err
	})
	return forward(st, trees, err, func(es []recipes.Entry) *pb.WatchKeysResponse {
		return &pb.WatchKeysResponse{Entries: wire.ToEntries(es)}
	})
}
