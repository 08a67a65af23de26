package client

import (
	"context"

	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

type group struct {
	recipe
	cfg recipes.GroupConfig
}

func (s *session) Group(path string, cfg recipes.GroupConfig) (recipes.Group, error) {
	r, err := s.at("group", path, cfg.Dialect)
	if err == nil && cfg.Name != "" {
		err = recipes.ValidateName(cfg.Name)
	}
	if err != nil {
		return nil, err
	}
	return group{r, cfg}, nil
}

func (g group) Join(ctx context.Context, data []byte) (recipes.Membership, error) {
	m, err := g.acquire(ctx, "group", nil, func(ctx context.Context, id string, resumed *pb.Grant) (answer, error) {
		return g.s.groups.Join(ctx, &pb.JoinRequest{
			Session: g.s.handle, RequestId: id, Path: g.path, Name: g.cfg.Name, Data: data, Dialect: g.dialect, Resumed: resumed,
		})
	})
	if err != nil {
		return nil, err
	}
	m.Done() // the removal of a member is always reported
	return membership{m}, nil
}

type membership struct{ *remoteGrant }

func (m membership) Update(ctx context.Context, data []byte) error {
	return writeAs(ctx, m.remoteGrant, "update", m.s.groups.Update, &pb.UpdateRequest{Session: m.s.handle, RequestId: m.id, Data: data})
}

func (m membership) Leave(ctx context.Context) error { return m.releaseGrant(ctx) }

func (g group) Members(ctx context.Context) ([]recipes.Member, error) {
	return read(ctx, g.recipe, g.s.groups.Members, &pb.MembersRequest{Session: g.s.handle, Path: g.path, Dialect: g.dialect},
		func(a *pb.MembersResponse) []recipes.Member { return wire.Members(a.GetMembers()) })
}

func (g group) Watch(ctx context.Context) (<-chan []recipes.Member, error) {
	return follow(ctx, g.recipe, g.s.groups.WatchMembers, &pb.WatchMembersRequest{Session: g.s.handle, Path: g.path, Dialect: g.dialect},
		func(m *pb.WatchMembersResponse) []recipes.Member { return wire.Members(m.GetMembers()) })
}
