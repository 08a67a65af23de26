package simulation

import (
	"context"

	"github.com/zkrecipes/zkrecipes/recipes"
)

func priorityLocks(*World) game { return game{turn: priorityTurn} }

// priorityTurn reads or writes with a priority.
func priorityTurn(ctx context.Context, c *client, s recipes.Client) error {
	const path = "/priority"
	// Low priorities can starve. So all clients have the lowest one when faults have ended.
	cfg := recipes.PriorityLockConfig{Strategy: pick(c.chance, recipes.Strategies()...), Joined: c.joined, Priority: 2}
	if c.world.calm.Err() == nil {
		cfg.Priority = c.chance.below(3)
	}
	l, err := s.PriorityLock(path, cfg)
	if err != nil {
		return err
	}
	g := &grant{session: s, path: path, journaled: true}
	return take(ctx, c, g, 1, readOrWrite(c, g, l.AcquireRead, l.AcquireWrite), recipes.PriorityHold.Release)
}

func priorityKind(c *client) kind {
	strategy, shared := choose(c, recipes.Strategies()...), choose(c, true, false)
	acquire := recipes.PriorityLock.AcquireWrite
	if shared {
		acquire = recipes.PriorityLock.AcquireRead
	}
	return kindOf("/priority", 1, shared, func(s recipes.Client, joined func(recipes.Place)) (recipes.PriorityLock, error) {
		return s.PriorityLock("/priority", recipes.PriorityLockConfig{Strategy: strategy, Joined: joined})
	}, acquire, recipes.PriorityHold.Release)
}
