package client

import (
	"context"
	"fmt"
	"path"

	"google.golang.org/grpc"

	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

type configuration struct {
	s    *session
	rpc  pb.ConfigurationServiceClient
	path string
}

func (s *session) Configuration(path string) (recipes.Configuration, error) {
	if err := recipes.ValidatePath(path); err != nil {
		return nil, err
	}
	if path == "/" {
		return nil, fmt.Errorf("configuration: %w: the root holds ZooKeeper's own nodes", recipes.ErrInvalid)
	}
	return &configuration{s: s, rpc: pb.NewConfigurationServiceClient(s.conn), path: path}, nil
}

func (c *configuration) Path() string { return c.path }

func (c *configuration) what(key string) string {
	return fmt.Sprintf("key %q of configuration %s", key, c.path)
}

func (c *configuration) Get(ctx context.Context, key string) (recipes.Entry, error) {
	if err := recipes.ValidateKey(key); err != nil {
		return recipes.Entry{}, err
	}
	return query(ctx, c.s, c.what(key), func(ctx context.Context) (recipes.Entry, error) {
		r, err := c.rpc.GetKey(ctx, &pb.GetKeyRequest{Session: c.s.handle, Path: c.path, Key: key})
		return wire.Entry(r.GetEntry()), err
	})
}

func (c *configuration) Set(ctx context.Context, key string, value []byte, expected recipes.Revision) (revision recipes.Revision, err error) {
	if err := recipes.ValidateKey(key); err != nil {
		return 0, err
	}
	err = c.s.change(ctx, c.what(key), func(ctx context.Context) error {
		r, err := c.rpc.SetKey(ctx, &pb.SetKeyRequest{
			Session: c.s.handle, Path: c.path, Key: key, Value: value, Expected: int64(expected),
		})
		revision = recipes.Revision(r.GetRevision())
		return err
	})
	return revision, err
}

func (c *configuration) Delete(ctx context.Context, key string, expected recipes.Revision) error {
	if err := recipes.ValidateKey(key); err != nil {
		return err
	}
	return c.s.change(ctx, c.what(key), func(ctx context.Context) error {
		_, err := c.rpc.DeleteKey(ctx, &pb.DeleteKeyRequest{Session: c.s.handle, Path: c.path, Key: key, Expected: int64(expected)})
		return err
	})
}

func (c *configuration) Key(op recipes.Op) (recipes.Op, error) {
	if err := recipes.ValidateKey(op.Path); err != nil {
		return recipes.Op{}, err
	}
	op.Path = path.Join(c.path, op.Path)
	return op, op.Validate()
}

func (c *configuration) Snapshot(ctx context.Context) ([]recipes.Entry, error) {
	return query(ctx, c.s, "configuration "+c.path, func(ctx context.Context) ([]recipes.Entry, error) {
		r, err := c.rpc.SnapshotKeys(ctx, &pb.SnapshotKeysRequest{Session: c.s.handle, Path: c.path})
		return wire.Entries(r.GetEntries()), err
	})
}

func (c *configuration) Watch(ctx context.Context, key string) (<-chan recipes.Entry, error) {
	if err := recipes.ValidateKey(key); err != nil {
		return nil, err
	}
	return watch(ctx, c.s, c.what(key),
		func(ctx context.Context) (grpc.ServerStreamingClient[pb.WatchKeyResponse], error) {
			return c.rpc.WatchKey(ctx, &pb.WatchKeyRequest{Session: c.s.handle, Path: c.path, Key: key})
		},
		func(m *pb.WatchKeyResponse) recipes.Entry { return wire.Entry(m.GetEntry()) })
}

func (c *configuration) WatchTree(ctx context.Context) (<-chan []recipes.Entry, error) {
	return watch(ctx, c.s, "configuration "+c.path,
		func(ctx context.Context) (grpc.ServerStreamingClient[pb.WatchKeysResponse], error) {
			return c.rpc.WatchKeys(ctx, &pb.WatchKeysRequest{Session: c.s.handle, Path: c.path})
		},
		func(m *pb.WatchKeysResponse) []recipes.Entry { return wire.Entries(m.GetEntries()) })
}
