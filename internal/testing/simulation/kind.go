package simulation

import (
	"context"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// kind is a recipe whose grants can be resumed.
type kind struct {
	path          string
	permits       int
	shared        bool
	unqueued      bool // it has no wait queue
	unwrapped     bool // see scenario
	enter         func(ctx context.Context, s recipes.Client, joined func(recipes.Place)) (recipes.Grant, error)
	resumeWaiting func(ctx context.Context, s recipes.Client, znode string) (recipes.Grant, error)
	resume        func(ctx context.Context, s recipes.Client, k *kept, token recipes.Token) (recipes.Grant, error)
	release      func(ctx context.Context, g recipes.Grant) error
}

// kindOf makes a kind from the methods of a recipe.
func kindOf[R any, G recipes.Grant](path string, permits int, shared bool, of func(recipes.Client, func(recipes.Place)) (R, error), enter func(R, context.Context) (G, error), release func(G, context.Context) error) kind {
	asGrant := func(g G, err error) (recipes.Grant, error) {
		if err != nil {
			return nil, err
		}
		return g, nil
	}
	return kind{
		path: path, permits: permits, shared: shared,
		enter: func(ctx context.Context, s recipes.Client, joined func(recipes.Place)) (recipes.Grant, error) {
			r, err := of(s, joined)
			if err != nil {
				return nil, err
			}
			return asGrant(enter(r, ctx))
		},
		resumeWaiting: func(ctx context.Context, s recipes.Client, znode string) (recipes.Grant, error) {
			r, err := of(s, nil)
			if err != nil {
				return nil, err
			}
			return asGrant(any(r).(interface {
				ResumeWaiting(context.Context, string, bool) (G, error)
			}).ResumeWaiting(ctx, znode, false))
		},
		resume: func(ctx context.Context, s recipes.Client, k *kept, token recipes.Token) (recipes.Grant, error) {
			r, err := of(s, nil)
			if err != nil {
				return nil, err
			}
			return asGrant(any(r).(interface {
				Resume(context.Context, string, recipes.Token) (G, error)
			}).Resume(ctx, k.znode, token))
		},
		release: func(ctx context.Context, g recipes.Grant) error { return release(g.(G), ctx) },
	}
}
