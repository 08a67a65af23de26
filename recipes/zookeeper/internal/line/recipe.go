package line

import (
	"context"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/znode"
)

// Recipe is a recipe that grants its contenders by their order in a wait queue. H is the
// type that the contract has for a grant.
type Recipe[H any] struct {
	znode.Recipe
	Line    *Line
	Reader  Reader        // reads the contenders
	Grant   func(*Hold) H // makes a grant of the contract
	Options Options       // of every contender; the caller decides Try
}

// NewRecipe returns the recipe of that name whose wait queue is l.
func NewRecipe[H any](l *Line, name string, r Reader, grant func(*Hold) H, checks ...error) (Recipe[H], error) {
	base, err := znode.New(l.Session, name, l.Path, checks...)
	return Recipe[H]{Recipe: base, Line: l, Reader: r, Grant: grant}, err
}

// Enter is Line.Enter.
func (r *Recipe[H]) Enter(ctx context.Context, o Options) (H, error) {
	return r.Granted(r.Line.Enter(ctx, o))
}

// Resume is Line.Resume.
func (r *Recipe[H]) Resume(ctx context.Context, znode string, token recipes.Token) (H, error) {
	return r.Granted(r.Line.Resume(ctx, znode, token))
}

// ResumeWaiting is Line.ResumeWaiting.
func (r *Recipe[H]) ResumeWaiting(ctx context.Context, znode string, try bool) (H, error) {
	return r.Granted(r.Line.ResumeWaiting(ctx, znode, r.Trying(try)))
}

// Trying returns the options of a contender that waits, or only tries.
func (r *Recipe[H]) Trying(try bool) Options {
	o := r.Options
	o.Try = try
	return o
}

// Granted returns the grant that the contract has for a hold, or the error with the name of
// the recipe.
func (r *Recipe[H]) Granted(hold *Hold, err error) (H, error) {
	if err != nil {
		var none H
		return none, r.Failed(err)
	}
	return r.Grant(hold), nil
}

// Contenders reads the contenders.
func (r *Recipe[H]) Contenders(ctx context.Context) ([]recipes.Contender, error) {
	all, err := r.Reader.At(ctx, r.Session, r.Path(), r.Line.Dialect)
	if err != nil {
		return nil, r.Failed(err)
	}
	return all, nil
}
