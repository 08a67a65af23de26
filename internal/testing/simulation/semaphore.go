package simulation

import (
	"context"
	"fmt"

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

// slotsPath has no sequence numbers near their end: there contenders are refused.
const slotsPath = "/slots"

// slotted has clients hold numbers. Each number is a thing of its own, with a journal: one
// holds it at a time, and its tokens grow.
func slotted(*World) game {
	const permits = 2
	return game{turn: func(ctx context.Context, c *client, s recipes.Client) error {
		l, err := s.Slots(slotsPath, recipes.SemaphoreConfig{Permits: permits, Strategy: pick(c.chance, recipes.Strategies()...), Joined: c.joined})
		if err != nil {
			return err
		}
		wait, cancel := c.patience(ctx)
		defer cancel()
		hold, err := l.Acquire(wait)
		if err != nil {
			return err
		}
		if hold.Slot() < 0 || hold.Slot() >= permits {
			c.world.fail(c.name, "granted number %d of %d", hold.Slot(), permits)
		}
		path := fmt.Sprintf("%s/%d", slotsPath, hold.Slot())
		return c.hold(ctx, &grant{client: c, session: s, path: path, Grant: hold, journaled: true}, 1, hold.Release)
	}}
}
