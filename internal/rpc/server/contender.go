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
	ss, err := s.session(r.GetSession())
	if err != nil {
		return nil, err
	}
	dialect, err := wire.Dialect(r.GetDialect())
	if err != nil {
		return nil, err
	}
	if dialect != "" {
		found, err := in(ctx, ss, r.GetPath(), wire.Kinds(r.GetKinds()), dialect)
		return &pb.ContendersResponse{Contenders: wire.ToContenders(found)}, err
	}
	lines, err := ss.Session.Contenders(ctx, r.GetPath(), wire.Kinds(r.GetKinds())...)
	return wire.ToLines(lines), err
}

// in returns the contenders of one kind in one dialect.
func in(ctx context.Context, ss *session, path string, kinds []recipes.Kind, dialect recipes.Dialect) ([]recipes.Contender, error) {
	if len(kinds) != 1 {
		return nil, fmt.Errorf("%w: a dialect, and %d kinds: it needs one", recipes.ErrInvalid, len(kinds))
	}
	switch kinds[0] {
	case recipes.KindLock:
		return list(ss.Lock(path, recipes.LockConfig{Dialect: dialect}))(ctx)
	case recipes.KindSharedLock:
		return list(ss.SharedLock(path, recipes.SharedLockConfig{Dialect: dialect}))(ctx)
	case recipes.KindSemaphore:
		if dialect != recipes.DefaultDialect {
			return list(ss.Semaphore(path, recipes.SemaphoreConfig{Permits: 1, Dialect: dialect}))(ctx)
		}
	case recipes.KindElection:
		e, err := ss.Election(path, recipes.ElectionConfig{Dialect: dialect})
		if err != nil {
			return nil, err
		}
		return e.Candidates(ctx)
	}
	if dialect == recipes.DefaultDialect { // recipes without dialects
		lines, err := ss.Session.Contenders(ctx, path, kinds...)
		return lines.Contenders, err
	}
	return nil, fmt.Errorf("%w: the kind %q has no dialects", recipes.ErrInvalid, kinds[0])
}

func list[L interface {
	Contenders(context.Context) ([]recipes.Contender, error)
}](l L, err error) func(context.Context) ([]recipes.Contender, error) {
	if err != nil {
		return func(context.Context) ([]recipes.Contender, error) { return nil, err }
	}
	return l.Contenders
}
