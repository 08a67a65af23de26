package client

import (
	"context"
	"fmt"

	"google.golang.org/grpc"

	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

type names struct {
	s    *session
	rpc  pb.NamesServiceClient
	path string
}

func (s *session) Names(path string) (recipes.Names, error) {
	if err := recipes.ValidatePath(path); err != nil {
		return nil, err
	}
	return &names{s: s, rpc: pb.NewNamesServiceClient(s.conn), path: path}, nil
}

func (n *names) Path() string { return n.path }

func (n *names) what(name string) string { return fmt.Sprintf("name %q of %s", name, n.path) }

func (n *names) request(id, name string, data []byte) *pb.RegisterNameRequest {
	return &pb.RegisterNameRequest{
		Session: n.s.handle, RequestId: id, Path: n.path, Name: name, Data: data, Persistent: id == "",
	}
}

func (n *names) Register(ctx context.Context, name string, data []byte) (recipes.Registration, error) {
	if err := recipes.ValidateName(name); err != nil {
		return nil, err
	}
	g, err := n.s.contend(ctx, "names", n.what(name), true, nil, func(ctx context.Context, id string, had *pb.Grant) (answer, error) {
		ask := n.request(id, name, data)
		ask.Resumed = had
		r, err := n.rpc.RegisterName(ctx, ask)
		return unplaced{r}, err
	})
	if err != nil {
		return nil, err
	}
	g.Done() // the name's removal is always noticed
	return registration{g, n.rpc, name}, nil
}

func (n *names) RegisterPersistent(ctx context.Context, name string, data []byte) error {
	if err := recipes.ValidateName(name); err != nil {
		return err
	}
	return n.s.change(ctx, n.what(name), func(ctx context.Context) error {
		_, err := n.rpc.RegisterName(ctx, n.request("", name, data))
		return err
	})
}

func (n *names) Unregister(ctx context.Context, name string, token recipes.Token) error {
	if err := recipes.ValidateName(name); err != nil {
		return err
	}
	return n.s.change(ctx, n.what(name), func(ctx context.Context) error {
		_, err := n.rpc.UnregisterName(ctx, &pb.UnregisterNameRequest{
			Session: n.s.handle, Path: n.path, Name: name, Token: int64(token),
		})
		return err
	})
}

func (n *names) Lookup(ctx context.Context, name string) (recipes.Record, error) {
	if err := recipes.ValidateName(name); err != nil {
		return recipes.Record{}, err
	}
	return query(ctx, n.s, n.what(name), func(ctx context.Context) (recipes.Record, error) {
		r, err := n.rpc.LookupName(ctx, &pb.LookupNameRequest{Session: n.s.handle, Path: n.path, Name: name})
		return wire.Record(r.GetRecord()), err
	})
}

func (n *names) List(ctx context.Context) ([]recipes.Record, error) {
	return query(ctx, n.s, "names of "+n.path, func(ctx context.Context) ([]recipes.Record, error) {
		records := []recipes.Record{}
		r, err := n.rpc.ListNames(ctx, &pb.ListNamesRequest{Session: n.s.handle, Path: n.path})
		for _, record := range r.GetRecords() {
			records = append(records, wire.Record(record))
		}
		return records, err
	})
}

func (n *names) Watch(ctx context.Context, name string) (<-chan recipes.Record, error) {
	if err := recipes.ValidateName(name); err != nil {
		return nil, err
	}
	return watch(ctx, n.s, n.what(name),
		func(ctx context.Context) (grpc.ServerStreamingClient[pb.WatchNameResponse], error) {
			return n.rpc.WatchName(ctx, &pb.WatchNameRequest{Session: n.s.handle, Path: n.path, Name: name})
		},
		func(m *pb.WatchNameResponse) recipes.Record { return wire.Record(m.GetRecord()) })
}

type registration struct {
	*grant
	rpc  pb.NamesServiceClient
	name string
}

func (r registration) Name() string { return r.name }

func (r registration) Update(ctx context.Context, data []byte) error {
	return r.change(ctx, "update", nil, func(ctx context.Context) error {
		_, err := r.rpc.UpdateName(ctx, &pb.UpdateNameRequest{Session: r.s.handle, RequestId: r.id, Data: data})
		return err
	})
}

func (r registration) Unregister(ctx context.Context) error { return r.giveBack(ctx) }
