package server

import (
	"context"
	"fmt"

	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

type contenderService struct {
	pb.UnimplementedContenderServiceServer
	*Server
}

func (s contenderService) Contenders(ctx context.Context, r *pb.ContendersRequest) (*pb.ContendersResponse, error) {
	t, err := s.target(r)
	if err != nil {
		return nil, err
	}
	if t.dialect != "" {
		found, err := t.line(ctx, wire.Kinds(r.GetKinds()))
		return &pb.ContendersResponse{Contenders: wire.ToContenders(found)}, err
	}
	lines, err := t.Client.Contenders(ctx, t.path, wire.Kinds(r.GetKinds())...)
	return wire.ToLines(lines), err
}

// line returns the contenders of one kind in one dialect.
func (t target) line(ctx context.Context, kinds []recipes.Kind) (_ []recipes.Contender, err error) {
	if len(kinds) != 1 {
		return nil, fmt.Errorf("%w: a request with a dialect needs exactly one kind, and has %d", recipes.ErrInvalid, len(kinds))
	}
	var line interface {
		Contenders(context.Context) ([]recipes.Contender, error)
	}
	switch kind := kinds[0]; {
	case kind == recipes.KindLock:
		line, err = t.Lock(t.path, recipes.LockConfig{Dialect: t.dialect})
	case kind == recipes.KindSharedLock:
		line, err = t.SharedLock(t.path, recipes.SharedLockConfig{Dialect: t.dialect})
	case kind == recipes.KindElection:
		e, err := election(t)
		if err != nil {
			return nil, err
		}
		return e.Candidates(ctx)
	case t.dialect == recipes.ZooKeeper: // recipes without dialects, and semaphores, whose number of permits is unknown
		lines, err := t.Client.Contenders(ctx, t.path, kind)
		return lines.Contenders, err
	case kind == recipes.KindSemaphore:
		line, err = t.Semaphore(t.path, recipes.SemaphoreConfig{Permits: 1, Dialect: t.dialect})
	default:
		err = fmt.Errorf("%w: the kind %q has no dialects", recipes.ErrInvalid, kind)
	}
	if err != nil {
		return nil, err
	}
	return line.Contenders(ctx)
}
