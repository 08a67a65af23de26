package server

import (
	"context"
	"fmt"

	"google.golang.org/grpc"

	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/plugin/rpc/wire"
	"github.com/zkrecipes/zkrecipes/recipes"
)

type groupService struct {
	pb.UnimplementedGroupServiceServer
	*Server
}

func (s groupService) Join(ctx context.Context, r *pb.JoinRequest) (*pb.JoinResponse, error) {
	ss, err := s.session(r.GetSession())
	if err != nil {
		return nil, wire.ToStatus(err, nil)
	}
	c, err := ss.claims.call(ctx, r.GetRequestId(), false, ss.join(r))
	if err != nil {
		return nil, wire.ToStatus(err, nil)
	}
	return &pb.JoinResponse{Grant: toGrant(c)}, nil
}

func (ss *session) join(r *pb.JoinRequest) contest {
	return func(ctx context.Context, _ func(recipes.Place)) (*held, error) {
		g, err := ss.Group(r.GetPath(), recipes.GroupConfig{Name: r.GetName()})
		if err != nil {
			return nil, err
		}
		m, err := g.Join(ctx, r.GetData())
		if err != nil {
			return nil, err
		}
		return &held{Grant: m, giveBack: m.Leave}, nil
	}
}

func (s groupService) Update(ctx context.Context, r *pb.UpdateRequest) (*pb.UpdateResponse, error) {
	return &pb.UpdateResponse{}, wire.ToStatus(s.update(ctx, r.GetSession(), r.GetRequestId(), r.GetData()), nil)
}

// update replaces the data of a grant's znode, where the recipe has such a thing.
func (s *Server) update(ctx context.Context, handle, id string, data []byte) error {
	ss, c, err := s.granted(handle, id)
	if err != nil {
		return err
	}
	u, ok := c.grant.Grant.(interface {
		Update(context.Context, []byte) error
	})
	if !ok {
		return fmt.Errorf("%w: request %s holds nothing that can be updated", recipes.ErrInvalid, id)
	}
	err = u.Update(ctx, data)
	ss.claims.judge(c, err)
	return err
}

// group finds a group; the own member's name does not matter to those who look.
func (s groupService) group(handle, path string) (recipes.Group, error) {
	ss, err := s.session(handle)
	if err != nil {
		return nil, err
	}
	return ss.Group(path, recipes.GroupConfig{})
}

func (s groupService) Members(ctx context.Context, r *pb.MembersRequest) (*pb.MembersResponse, error) {
	g, err := s.group(r.GetSession(), r.GetPath())
	if err != nil {
		return nil, wire.ToStatus(err, nil)
	}
	members, err := g.Members(ctx)
	if err != nil {
		return nil, wire.ToStatus(err, nil)
	}
	return &pb.MembersResponse{Members: wire.ToMembers(members)}, nil
}

func (s groupService) WatchMembers(r *pb.WatchMembersRequest, st grpc.ServerStreamingServer[pb.WatchMembersResponse]) error {
	g, err := s.group(r.GetSession(), r.GetPath())
	if err != nil {
		return wire.ToStatus(err, nil)
	}
	snapshots, err := g.Watch(st.Context())
	return forward(st, snapshots, err, func(ms []recipes.Member) *pb.WatchMembersResponse {
		return &pb.WatchMembersResponse{Members: wire.ToMembers(ms)}
	})
}

// forward sends what a watch gives until it ends: with the stream, or with the
// session. err is the watch's first look's.
func forward[T, M any](st grpc.ServerStreamingServer[M], values <-chan T, err error, message func(T) *M) error {
	if err != nil {
		return wire.ToStatus(err, nil)
	}
	for v := range values {
		if err := st.Send(message(v)); err != nil {
			return err
		}
	}
	return nil
}
