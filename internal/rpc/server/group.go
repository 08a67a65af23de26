package server

import (
	"context"

	"google.golang.org/grpc"

	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

type groupService struct {
	pb.UnimplementedGroupServiceServer
	*Server
}

func (s groupService) Join(ctx context.Context, r *pb.JoinRequest) (*pb.JoinResponse, error) {
	c, err := s.contend(ctx, r, false, func(ctx context.Context, ss *session, _ func(recipes.Place)) (*held, error) {
		dialect, err := wire.Dialect(r.GetDialect())
		if err != nil {
			return nil, err
		}
		g, err := ss.Group(r.GetPath(), recipes.GroupConfig{Name: r.GetName(), Dialect: dialect})
		if err != nil {
			return nil, err
		}
		var m recipes.Membership
		if had := r.GetResumed(); had != nil {
			m, err = takeUp[recipes.Membership](ctx, g, had, false)
		} else {
			m, err = g.Join(ctx, r.GetData())
		}
		if err != nil {
			return nil, err
		}
		return &held{Grant: m, giveBack: m.Leave}, nil
	})
	if err != nil {
		return nil, err
	}
	return &pb.JoinResponse{Grant: toGrant(c)}, nil
}

func (s groupService) Update(ctx context.Context, r *pb.UpdateRequest) (*pb.UpdateResponse, error) {
	return &pb.UpdateResponse{}, s.update(ctx, r, r.GetData())
}

// update replaces the data of a grant's znode, where the recipe has such a thing.
func (s *Server) update(ctx context.Context, r request, data []byte) error {
	ss, c, err := s.granted(r)
	if err != nil {
		return err
	}
	u, err := as[interface {
		Update(context.Context, []byte) error
	}](c, "nothing that can be updated")
	if err != nil {
		return err
	}
	err = u.Update(ctx, data)
	ss.tickets.judge(c, err)
	return err
}

// group finds a group, for calls that do not depend on the caller's own name in it.
func (s groupService) group(r interface {
	GetSession() string
	GetPath() string
	GetDialect() string
}) (recipes.Group, error) {
	ss, err := s.session(r.GetSession())
	if err != nil {
		return nil, err
	}
	dialect, err := wire.Dialect(r.GetDialect())
	if err != nil {
		return nil, err
	}
	return ss.Group(r.GetPath(), recipes.GroupConfig{Dialect: dialect})
}

func (s groupService) Members(ctx context.Context, r *pb.MembersRequest) (*pb.MembersResponse, error) {
	g, err := s.group(r)
	if err != nil {
		return nil, err
	}
	members, err := g.Members(ctx)
	return &pb.MembersResponse{Members: wire.ToMembers(members)}, err
}

func (s groupService) WatchMembers(r *pb.WatchMembersRequest, st grpc.ServerStreamingServer[pb.WatchMembersResponse]) error {
	g, err := s.group(r)
	if err != nil {
		return err
	}
	snapshots, err := g.Watch(st.Context())
	return forward(st, snapshots, err, func(ms []recipes.Member) *pb.WatchMembersResponse {
		return &pb.WatchMembersResponse{Members: wire.ToMembers(ms)}
	})
}
