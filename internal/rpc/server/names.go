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

func (s namesService) names(handle, path string) (recipes.Names, error) {
	ss, err := s.session(handle)
	if err != nil {
		return nil, err
	}
	return ss.Names(path)
}

func (s namesService) RegisterName(ctx context.Context, r *pb.RegisterNameRequest) (*pb.RegisterNameResponse, error) {
	n, err := s.names(r.GetSession(), r.GetPath())
	if err != nil {
		return nil, err
	}
	if r.GetPersistent() {
		err := n.RegisterPersistent(ctx, r.GetName(), r.GetData())
		return &pb.RegisterNameResponse{}, err
	}
	c, err := s.contend(ctx, r, false, func(ctx context.Context, _ *session, _ func(recipes.Place)) (_ *held, err error) {
		var g recipes.Registration
		if had := r.GetResumed(); had != nil {
			g, err = takeUp[recipes.Registration](ctx, n, had, false)
		} else {
			g, err = n.Register(ctx, r.GetName(), r.GetData())
		}
		if err != nil {
			return nil, err
		}
		return &held{Grant: g, giveBack: g.Unregister}, nil
	})
	if err != nil {
		return nil, err
	}
	return &pb.RegisterNameResponse{Grant: toGrant(c)}, nil
}

func (s namesService) UpdateName(ctx context.Context, r *pb.UpdateNameRequest) (*pb.UpdateNameResponse, error) {
	return &pb.UpdateNameResponse{}, s.update(ctx, r, r.GetData())
}

func (s namesService) UnregisterName(ctx context.Context, r *pb.UnregisterNameRequest) (*pb.UnregisterNameResponse, error) {
	n, err := s.names(r.GetSession(), r.GetPath())
	if err == nil {
		err = n.Unregister(ctx, r.GetName(), recipes.Token(r.GetToken()))
	}
	return &pb.UnregisterNameResponse{}, err
}

func (s namesService) LookupName(ctx context.Context, r *pb.LookupNameRequest) (*pb.LookupNameResponse, error) {
	n, err := s.names(r.GetSession(), r.GetPath())
	if err != nil {
		return nil, err
	}
	record, err := n.Lookup(ctx, r.GetName())
	return &pb.LookupNameResponse{Record: wire.ToRecord(record)}, err
}

func (s namesService) ListNames(ctx context.Context, r *pb.ListNamesRequest) (*pb.ListNamesResponse, error) {
	n, err := s.names(r.GetSession(), r.GetPath())
	if err != nil {
		return nil, err
	}
	records, err := n.List(ctx)
	response := &pb.ListNamesResponse{}
	for _, record := range records {
		response.Records = append(response.Records, wire.ToRecord(record))
	}
	return response, err
}

func (s namesService) WatchName(r *pb.WatchNameRequest, st grpc.ServerStreamingServer[pb.WatchNameResponse]) error {
	n, err := s.names(r.GetSession(), r.GetPath())
	if err != nil {
		return err
	}
	records, err := n.Watch(st.Context(), r.GetName())
	return forward(st, records, err, func(r recipes.Record) *pb.WatchNameResponse {
		return &pb.WatchNameResponse{Record: wire.ToRecord(r)}
	})
}
