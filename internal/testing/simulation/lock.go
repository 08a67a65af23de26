package simulation

import (
	"context"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// locks has clients take turns with a lock. Their strategies are mixed, or all the same.
func locks(w *World) game {
	strategies := recipes.Strategies()
	if w.chance.chance(50) {
		strategies = []recipes.Strategy{pick(w.chance, strategies...)}
	}
	return game{turn: func(ctx context.Context, c *client, s recipes.Client) error {
		return lockTurn(ctx, c, s, "/lock", "", strategies)
	}}
}

// lockTurn acquires a lock, or only tries to, and works under it.
func lockTurn(ctx context.Context, c *client, s recipes.Client, path string, d recipes.Dialect, strategies []recipes.Strategy) error {
	l, err := s.Lock(path, recipes.LockConfig{Dialect: d, Strategy: pick(c.chance, strategies...), Joined: c.joined})
	if err != nil {
		return err
	}
	return take(ctx, c, &grant{session: s, path: path, journaled: true}, 1, func(ctx context.Context) (recipes.Hold, error) {
		if c.chance.chance(10) {
			return l.TryAcquire(ctx)
		}
		return l.Acquire(ctx)
	}, recipes.Hold.Release)
}

func lockKind(c *client) kind {
	strategy := choose(c, recipes.Strategies()...)
	return kindOf("/lock", 1, false, func(s recipes.Client, joined func(recipes.Place)) (recipes.Lock, error) {
		return s.Lock("/lock", recipes.LockConfig{Strategy: strategy, Joined: joined})
	}, recipes.Lock.Acquire, recipes.Hold.Release)
}
