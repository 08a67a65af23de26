package simulation

import (
	"context"

	"github.com/zkrecipes/zkrecipes/recipes"
)

func semaphores(w *World) game {
	permits := 1 + w.chance.below(3)
	return game{turn: func(ctx context.Context, c *client, s recipes.Client) error {
		return semaphoreTurn(ctx, c, s, "/semaphore", "", permits)
	}}
}

func semaphoreTurn(ctx context.Context, c *client, s recipes.Client, path string, d recipes.Dialect, permits int) error {
	l, err := s.Semaphore(path, recipes.SemaphoreConfig{
		Permits: permits, Dialect: d, Strategy: pick(c.chance, recipes.Strategies()...), Joined: c.joined,
	})
	if err != nil {
		return err
	}
	wait, cancel := c.patience(ctx)
	defer cancel()
	hold, err := l.Acquire(wait)
	if err != nil {
		return err
	}
	return c.hold(ctx, &grant{client: c, session: s, path: path, Grant: hold}, permits, hold.Release)
}
