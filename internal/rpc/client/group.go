package client

import (
	"context"
	"fmt"

	"google.golang.org/grpc"

	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

type group struct {
	s    *session
	rpc  pb.GroupServiceClient
	path string
	cfg  recipes.GroupConfig

	dialect string // as wire.ToDialect has it
}

func (s *session) Group(path string, cfg recipes.GroupConfig) (recipes.Group, error) {
	if err := recipes.ValidatePath(path); err != nil {
		return nil, err
	}
	if cfg.Name != "" {
		if err := recipes.ValidateName(cfg.Name); err != nil {
			return nil, err
		}
	}
	dialect, err := wire.ToDialect(cfg.Dialect)
	if err != nil {
		return nil, fmt.Errorf("group %s: %w", path, err)
	}
	return &group{s: s, rpc: pb.NewGroupServiceClient(s.conn), path: path, cfg: cfg, dialect: dialect}, nil
}

func (g *group) Path() string { return g.path }

func (g *group) what() string { return "group " + g.path }

func (g *group) Join(ctx context.Context, data []byte) (recipes.Membership, error) {
	if err := g.s.hasDialect(ctx, g.what(), g.dialect); err != nil {
		return nil, err
	}
	m, err := g.s.contend(ctx, "group", g.what(), true, nil, func(ctx context.Context, id string, had *pb.Grant) (answer, error) {
		r, err := g.rpc.Join(ctx, &pb.JoinRequest{
			Session: g.s.handle, RequestId: id, Path: g.path, Name: g.cfg.Name, Data: data, Dialect: g.dialect, Resumed: had,
		})
		return unplaced{r}, err
	})
	if err != nil {
		return nil, err
	}
	m.Done() // a member's removal is always noticed
	return membership{m, g.rpc}, nil
}

type membership struct {
	*grant
	rpc pb.GroupServiceClient
}

func (m membership) Update(ctx context.Context, data []byte) error {
	return m.change(ctx, "update", nil, func(ctx context.Context) error {
		_, err := m.rpc.Update(ctx, &pb.UpdateRequest{Session: m.s.handle, RequestId: m.id, Data: data})
		return err
	})
}

func (m membership) Leave(ctx context.Context) error { return m.giveBack(ctx) }

func (g *group) Members(ctx context.Context) ([]recipes.Member, error) {
	if err := g.s.hasDialect(ctx, g.what(), g.dialect); err != nil {
		return nil, err
	}
	return query(ctx, g.s, g.what(), func(ctx context.Context) ([]recipes.Member, error) {
		r, err := g.rpc.Members(ctx, &pb.MembersRequest{Session: g.s.handle, Path: g.path, Dialect: g.dialect})
		return wire.Members(r.GetMembers()), err
	})
}

func (g *group) Watch(ctx context.Context) (<-chan []recipes.Member, error) {
	if err := g.s.hasDialect(ctx, g.what(), g.dialect); err != nil {
		return nil, err
	}
	return watch(ctx, g.s, g.what(),
		func(ctx context.Context) (grpc.ServerStreamingClient[pb.WatchMembersResponse], error) {
			return g.rpc.WatchMembers(ctx, &pb.WatchMembersRequest{Session: g.s.handle, Path: g.path, Dialect: g.dialect})
		},
		func(m *pb.WatchMembersResponse) []recipes.Member { return wire.Members(m.GetMembers()) })
}
