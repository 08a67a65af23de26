package server

import (
	"context"

	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
)

type contenderService struct {
	pb.UnimplementedContenderServiceServer
	*Server
}

func (s contenderService) Contenders(ctx context.Context, r *pb.ContendersRequest) (*pb.ContendersResponse, error) {
	ss, err := s.session(r.GetSession())
	if err != nil {
		return nil, err
	}
	lines, err := ss.Session.Contenders(ctx, r.GetPath(), wire.Kinds(r.GetKinds())...)
	return wire.ToLines(lines), err
}
