package client

import (
	"context"
	"fmt"

	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

type names struct{ recipe }

func (s *session) Names(path string) (recipes.Names, error) {
	r, err := s.at("names", path, "")
	if err != nil {
		return nil, err
	}
	return names{r.about("names of " + path)}, nil
}

// name returns the recipe for a call about one name.
func (n names) name(name string) recipe { return n.about(fmt.Sprintf("name %q of %s", name, n.path)) }

func (n names) request(id, name string, data []byte) *pb.RegisterNameRequest {
	return &pb.RegisterNameRequest{
		Session: n.s.handle, RequestId: id, Path: n.path, Name: name, Data: data, Persistent: id == "",
	}
}

func (n names) Register(ctx context.Context, name string, data []byte) (recipes.Registration, error) {
	if err := recipes.ValidateName(name); err != nil {
		return nil, err
	}
	g, err := n.name(name).acquire(ctx, "names", nil, func(ctx context.Context, id string, resumed *pb.Grant) (answer, error) {
		ask := n.request(id, name, data)
		ask.Resumed = resumed
		return n.s.names.RegisterName(ctx, ask)
	})
	if err != nil {
		return nil, err
	}
	g.Done() // the removal of a name is always reported
	return registration{g, name}, nil
}

func (n names) RegisterPersistent(ctx context.Context, name string, data []byte) error {
	if err := recipes.ValidateName(name); err != nil {
		return err
	}
	return change(ctx, n.name(name), once, n.s.names.RegisterName, n.request("", name, data))
}

func (n names) Unregister(ctx context.Context, name string, token recipes.Token) error {
	if err := recipes.ValidateName(name); err != nil {
		return err
	}
	return change(ctx, n.name(name), once, n.s.names.UnregisterName, &pb.UnregisterNameRequest{
		Session: n.s.handle, Path: n.path, Name: name, Token: int64(token),
	})
}

func (n names) Lookup(ctx context.Context, name string) (recipes.Record, error) {
	if err := recipes.ValidateName(name); err != nil {
		return recipes.Record{}, err
	}
	return read(ctx, n.name(name), n.s.names.LookupName, &pb.LookupNameRequest{Session: n.s.handle, Path: n.path, Name: name},
		func(a *pb.LookupNameResponse) recipes.Record { return wire.Record(a.GetRecord()) })
}

func (n names) List(ctx context.Context) ([]recipes.Record, error) {
	return read(ctx, n.recipe, n.s.names.ListNames, &pb.ListNamesRequest{Session: n.s.handle, Path: n.path},
		func(a *pb.ListNamesResponse) []recipes.Record { return wire.Each(a.GetRecords(), wire.Record) })
}

func (n names) Watch(ctx context.Context, name string) (<-chan recipes.Record, error) {
	if err := recipes.ValidateName(name); err != nil {
		return nil, err
	}
	return follow(ctx, n.name(name), n.s.names.WatchName, &pb.WatchNameRequest{Session: n.s.handle, Path: n.path, Name: name},
		func(m *pb.WatchNameResponse) recipes.Record { return wire.Record(m.GetRecord()) })
}

type registration struct {
	*remoteGrant
	name string
}

func (r registration) Name() string { return r.name }

func (r registration) Update(ctx context.Context, data []byte) error {
	return writeAs(ctx, r.remoteGrant, "update", r.s.names.UpdateName, &pb.UpdateNameRequest{Session: r.s.handle, RequestId: r.id, Data: data})
}

func (r registration) Unregister(ctx context.Context) error { return r.releaseGrant(ctx) }

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
		func(a *pb.MembersResponse) []recipes.Member { return wire.Each(a.GetMembers(), wire.Member) })
}

func (g group) Watch(ctx context.Context) (<-chan []recipes.Member, error) {
	return follow(ctx, g.recipe, g.s.groups.WatchMembers, &pb.WatchMembersRequest{Session: g.s.handle, Path: g.path, Dialect: g.dialect},
		func(m *pb.WatchMembersResponse) []recipes.Member { return wire.Each(m.GetMembers(), wire.Member) })
}
