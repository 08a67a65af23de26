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

// line returns the contenders of one kind at the path, in the recipe's dialect.
func (r recipe) line(ctx context.Context, kind recipes.Kind) ([]recipes.Contender, error) {
	return read(ctx, r.about("contenders at "+r.path), pb.NewContenderServiceClient(r.s.conn).Contenders, &pb.ContendersRequest{
		Session: r.s.handle, Path: r.path, Kinds: []string{string(kind)}, Dialect: cmp.Or(r.dialect, string(recipes.DefaultDialect)),
	}, func(a *pb.ContendersResponse) []recipes.Contender { return wire.Contenders(a.GetContenders()) })
}
