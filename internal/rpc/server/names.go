package server

import (
	"context"

	"google.golang.org/grpc"

	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

type namesService struct {
	pb.UnimplementedNamesServiceServer
	*Server
}

func names(t target) (recipes.Names, error) { return t.Names(t.path) }

func (s namesService) RegisterName(ctx context.Context, r *pb.RegisterNameRequest) (*pb.RegisterNameResponse, error) {
	if r.GetPersistent() {
		return &pb.RegisterNameResponse{}, do(s.Server, r, names, func(n recipes.Names) error {
			return n.RegisterPersistent(ctx, r.GetName(), r.GetData())
		})
	}
	open := func(t target, _ func(recipes.Place)) (recipes.Names, error) { return names(t) }
	register := func(n recipes.Names, ctx context.Context) (recipes.Registration, error) {
		return n.Register(ctx, r.GetName(), r.GetData())
	}
	c, err := s.contend(ctx, r, false, granting(r, open, register, recipes.Registration.Unregister))
	return &pb.RegisterNameResponse{Grant: toGrant(c)}, err
}

func (s namesService) UpdateName(ctx context.Context, r *pb.UpdateNameRequest) (*pb.UpdateNameResponse, error) {
	return &pb.UpdateNameResponse{}, update(ctx, s.Server, r)
}

func (s namesService) UnregisterName(ctx context.Context, r *pb.UnregisterNameRequest) (*pb.UnregisterNameResponse, error) {
	return &pb.UnregisterNameResponse{}, do(s.Server, r, names, func(n recipes.Names) error {
		return n.Unregister(ctx, r.GetName(), recipes.Token(r.GetToken()))
	})
}

func (s namesService) LookupName(ctx context.Context, r *pb.LookupNameRequest) (*pb.LookupNameResponse, error) {
	record, err := with(s.Server, r, names, func(n recipes.Names) (recipes.Record, error) { return n.Lookup(ctx, r.GetName()) })
	return &pb.LookupNameResponse{Record: wire.ToRecord(record)}, err
}

func (s namesService) ListNames(ctx context.Context, r *pb.ListNamesRequest) (*pb.ListNamesResponse, error) {
	records, err := with(s.Server, r, names, func(n recipes.Names) ([]recipes.Record, error) { return n.List(ctx) })
	return &pb.ListNamesResponse{Records: wire.Each(records, wire.ToRecord)}, err
}

func (s namesService) WatchName(r *pb.WatchNameRequest, st grpc.ServerStreamingServer[pb.WatchNameResponse]) error {
	records, err := with(s.Server, r, names, func(n recipes.Names) (<-chan recipes.Record, error) {
		return n.Watch(st.Context(), r.GetName())
	})
	return forward(st, records, err, func(r recipes.Record) *pb.WatchNameResponse {
		return &pb.WatchNameResponse{Record: wire.ToRecord(r)}
	})
}

type groupService struct {
	pb.UnimplementedGroupServiceServer
	*Server
}

func (s groupService) Join(ctx context.Context, r *pb.JoinRequest) (*pb.JoinResponse, error) {
	open := func(t target, _ func(recipes.Place)) (recipes.Group, error) {
		return t.Group(t.path, recipes.GroupConfig{Name: r.GetName(), Dialect: t.dialect})
	}
	join := func(g recipes.Group, ctx context.Context) (recipes.Membership, error) {
		return g.Join(ctx, r.GetData())
	}
	c, err := s.contend(ctx, r, false, granting(r, open, join, recipes.Membership.Leave))
	return &pb.JoinResponse{Grant: toGrant(c)}, err
}

func (s groupService) Update(ctx context.Context, r *pb.UpdateRequest) (*pb.UpdateResponse, error) {
	return &pb.UpdateResponse{}, update(ctx, s.Server, r)
}

// updater is a grant whose znode data can be replaced.
type updater interface {
	Update(context.Context, []byte) error
}

// update replaces the data of a grant's znode.
func update(ctx context.Context, s *Server, r interface {
	request
	GetData() []byte
}) error {
	return withGrant(s, r, "nothing that can be updated", func(_ *session, _ *acquisition, u updater) error {
		return u.Update(ctx, r.GetData())
	})
}

// group opens a group for calls that do not depend on the caller's own name in it.
func group(t target) (recipes.Group, error) {
	return t.Group(t.path, recipes.GroupConfig{Dialect: t.dialect})
}

func (s groupService) Members(ctx context.Context, r *pb.MembersRequest) (*pb.MembersResponse, error) {
	members, err := with(s.Server, r, group, func(g recipes.Group) ([]recipes.Member, error) { return g.Members(ctx) })
	return &pb.MembersResponse{Members: wire.Each(members, wire.ToMember)}, err
}

func (s groupService) WatchMembers(r *pb.WatchMembersRequest, st grpc.ServerStreamingServer[pb.WatchMembersResponse]) error {
	snapshots, err := with(s.Server, r, group, func(g recipes.Group) (<-chan []recipes.Member, error) { return g.Watch(st.Context()) })
	return forward(st, snapshots, err, func(ms []recipes.Member) *pb.WatchMembersResponse {
		return &pb.WatchMembersResponse{Members: wire.Each(ms, wire.ToMember)}
	})
}
