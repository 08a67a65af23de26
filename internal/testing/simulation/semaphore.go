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
	return take(ctx, c, &grant{session: s, path: path}, permits, l.Acquire, recipes.Hold.Release)
}

func semaphoreKind(c *client) kind {
	strategy := choose(c, recipes.Strategies()...)
	return kindOf("/semaphore", 2, false, func(s recipes.Client, joined func(recipes.Place)) (recipes.Semaphore, error) {
		return s.Semaphore("/semaphore", recipes.SemaphoreConfig{Permits: 2, Strategy: strategy, Joined: joined})
	}, recipes.Semaphore.Acquire, recipes.Hold.Release)
}
