package client

import (
	"cmp"
	"context"
	"errors"

	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

func (s *session) Contenders(ctx context.Context, path string, kinds ...recipes.Kind) (recipes.Lines, error) {
	if err := errors.Join(recipes.ValidatePath(path), recipes.ValidateKinds(kinds...)); err != nil {
		return recipes.Lines{}, err
	}
	return query(ctx, s, "contenders at "+path, func(ctx context.Context) (recipes.Lines, error) {
		r, err := pb.NewContenderServiceClient(s.conn).Contenders(ctx, &pb.ContendersRequest{
			Session: s.handle, Path: path, Kinds: wire.ToKinds(kinds),
		})
		return wire.Lines(r), err
	})
}

// line returns the contenders of one kind at path, in one dialect as wire.ToDialect has it.
func (s *session) line(ctx context.Context, path string, kind recipes.Kind, dialect string) ([]recipes.Contender, error) {
	what := "contenders at " + path
	if err := s.hasDialect(ctx, what, dialect); err != nil {
		return nil, err
	}
	return query(ctx, s, what, func(ctx context.Context) ([]recipes.Contender, error) {
		r, err := pb.NewContenderServiceClient(s.conn).Contenders(ctx, &pb.ContendersRequest{
			Session: s.handle, Path: path, Kinds: []string{string(kind)}, Dialect: cmp.Or(dialect, string(recipes.DefaultDialect)),
		})
		return wire.Contenders(r.GetContenders()), err
	})
}
