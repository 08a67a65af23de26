package simulation

import (
	"context"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// locks are of mixed strategies, or all of one.
func locks(w *World) game {
	strategies := recipes.Strategies()
	if w.chance.chance(50) {
		strategies = []recipes.Strategy{pick(w.chance, strategies...)}
	}
	return game{turn: func(ctx context.Context, c *client, s recipes.Client) error {
		return lockTurn(ctx, c, s, "/lock", "", strategies)
	}}
}

// lockTurn acquires a lock, or gives up, and works under it.
func lockTurn(ctx context.Context, c *client, s recipes.Client, path string, d recipes.Dialect, strategies []recipes.Strategy) error {
	l, err := s.Lock(path, recipes.LockConfig{
		Dialect:  d,
		Strategy: pick(c.chance, strategies...),
		Joined:   c.joined,
	})
	if err != nil {
		return err
	}
	wait, cancel := c.patience(ctx)
	defer cancel()
	acquire := l.Acquire
	if c.chance.chance(10) {
		acquire = l.TryAcquire
	}
	hold, err := acquire(wait)
	if err != nil {
		return err
	}
	return c.hold(ctx, &grant{client: c, session: s, path: path, Grant: hold, journaled: true}, 1, hold.Release)
}
