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
	err := recipes.ValidatePath(path)
	for _, k := range kinds {
		err = errors.Join(err, k.Validate())
	}
	if err != nil {
		return recipes.Lines{}, err
	}
	return read(ctx, recipe{s: s, what: "contenders at " + path}, s.contenders.Contenders,
		&pb.ContendersRequest{Session: s.handle, Path: path, Kinds: wire.ToKinds(kinds)}, wire.Lines)
}

// line returns the contenders of one kind at the path, in the recipe's dialect.
func (r recipe) line(ctx context.Context, kind recipes.Kind) ([]recipes.Contender, error) {
	return read(ctx, r.about("contenders at "+r.path), r.s.contenders.Contenders, &pb.ContendersRequest{
		Session: r.s.handle, Path: r.path, Kinds: []string{string(kind)}, Dialect: cmp.Or(r.dialect, string(recipes.ZooKeeper)),
	}, func(a *pb.ContendersResponse) []recipes.Contender { return wire.Contenders(a.GetContenders()) })
}
