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
		return with(s.Server, r, names, func(n recipes.Names) (*pb.RegisterNameResponse, error) {
			return &pb.RegisterNameResponse{}, n.RegisterPersistent(ctx, r.GetName(), r.GetData())
		})
	}
	c, err := s.contend(ctx, r, false, func(ctx context.Context, t target, _ func(recipes.Place)) (*grant, error) {
		n, err := names(t)
		if err != nil {
			return nil, err
		}
		register := func(ctx context.Context) (recipes.Registration, error) {
			return n.Register(ctx, r.GetName(), r.GetData())
		}
		return acquire(ctx, n, r, register, recipes.Registration.Unregister)
	})
	if err != nil {
		return nil, err
	}
	return &pb.RegisterNameResponse{Grant: toGrant(c)}, nil
}

func (s namesService) UpdateName(ctx context.Context, r *pb.UpdateNameRequest) (*pb.UpdateNameResponse, error) {
	return update(ctx, s.Server, r, &pb.UpdateNameResponse{})
}

func (s namesService) UnregisterName(ctx context.Context, r *pb.UnregisterNameRequest) (*pb.UnregisterNameResponse, error) {
	return with(s.Server, r, names, func(n recipes.Names) (*pb.UnregisterNameResponse, error) {
		return &pb.UnregisterNameResponse{}, n.Unregister(ctx, r.GetName(), recipes.Token(r.GetToken()))
	})
}

func (s namesService) LookupName(ctx context.Context, r *pb.LookupNameRequest) (*pb.LookupNameResponse, error) {
	return with(s.Server, r, names, func(n recipes.Names) (*pb.LookupNameResponse, error) {
		record, err := n.Lookup(ctx, r.GetName())
		return &pb.LookupNameResponse{Record: wire.ToRecord(record)}, err
	})
}

func (s namesService) ListNames(ctx context.Context, r *pb.ListNamesRequest) (*pb.ListNamesResponse, error) {
	return with(s.Server, r, names, func(n recipes.Names) (*pb.ListNamesResponse, error) {
		records, err := n.List(ctx)
		return &pb.ListNamesResponse{Records: wire.ToRecords(records)}, err
	})
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
	c, err := s.contend(ctx, r, false, func(ctx context.Context, t target, _ func(recipes.Place)) (*grant, error) {
		g, err := t.Group(t.path, recipes.GroupConfig{Name: r.GetName(), Dialect: t.dialect})
		if err != nil {
			return nil, err
		}
		join := func(ctx context.Context) (recipes.Membership, error) { return g.Join(ctx, r.GetData()) }
		return acquire(ctx, g, r, join, recipes.Membership.Leave)
	})
	if err != nil {
		return nil, err
	}
	return &pb.JoinResponse{Grant: toGrant(c)}, nil
}

func (s groupService) Update(ctx context.Context, r *pb.UpdateRequest) (*pb.UpdateResponse, error) {
	return update(ctx, s.Server, r, &pb.UpdateResponse{})
}

// updater is a grant whose znode data can be replaced.
type updater interface {
	Update(context.Context, []byte) error
}

// update replaces the data of a grant's znode.
func update[A any](ctx context.Context, s *Server, r interface {
	request
	GetData() []byte
}, answer A) (A, error) {
	return withGrant(s, r, "nothing that can be updated", func(_ *session, _ *acquisition, u updater) (A, error) {
		return answer, u.Update(ctx, r.GetData())
	})
}

// group opens a group for calls that do not depend on the caller's own name in it.
func group(t target) (recipes.Group, error) {
	return t.Group(t.path, recipes.GroupConfig{Dialect: t.dialect})
}

func (s groupService) Members(ctx context.Context, r *pb.MembersRequest) (*pb.MembersResponse, error) {
	return with(s.Server, r, group, func(g recipes.Group) (*pb.MembersResponse, error) {
		members, err := g.Members(ctx)
		return &pb.MembersResponse{Members: wire.ToMembers(members)}, err
	})
}

func (s groupService) WatchMembers(r *pb.WatchMembersRequest, st grpc.ServerStreamingServer[pb.WatchMembersResponse]) error {
	snapshots, err := with(s.Server, r, group, func(g recipes.Group) (<-chan []recipes.Member, error) { return g.Watch(st.Context()) })
	return forward(st, snapshots, err, func(ms []recipes.Member) *pb.WatchMembersResponse {
		return &pb.WatchMembersResponse{Members: wire.ToMembers(ms)}
	})
}
