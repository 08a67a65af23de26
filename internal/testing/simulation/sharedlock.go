package simulation

import (
	"context"

	"github.com/zkrecipes/zkrecipes/recipes"
)

func sharedLocks(*World) game {
	return game{turn: func(ctx context.Context, c *client, s recipes.Client) error {
		return sharedTurn(ctx, c, s, "/shared", "")
	}}
}

func priorityLocks(*World) game { return game{turn: priorityTurn} }

// sharedTurn reads, or writes, or writes and then reads.
func sharedTurn(ctx context.Context, c *client, s recipes.Client, path string, d recipes.Dialect) error {
	l, err := s.SharedLock(path, recipes.SharedLockConfig{Dialect: d, Strategy: pick(c.chance, recipes.Strategies()...), Joined: c.joined})
	if err != nil {
		return err
	}
	wait, cancel := c.patience(ctx)
	defer cancel()
	acquire, shared := l.AcquireWrite, false
	if c.chance.chance(60) {
		acquire, shared = l.AcquireRead, true
	}
	hold, err := acquire(wait)
	if err != nil {
		return err
	}
	g := &grant{client: c, session: s, path: path, Grant: hold, shared: shared, journaled: true}
	if shared || c.chance.chance(70) {
		return c.hold(ctx, g, 1, hold.Release)
	}
	c.world.ledger.enter(g, 1)
	c.work(ctx, g)
	c.world.ledger.share(g)
	err = hold.Downgrade(ctx)
	c.note("downgraded %s: %v", hold.Znode(), err)
	c.work(ctx, g)
	c.world.ledger.leave(g)
	return hold.Release(ctx)
}

// priorityTurn reads or writes with a priority.
func priorityTurn(ctx context.Context, c *client, s recipes.Client) error {
	const path = "/priority"
	// Lower priorities starve. So everybody has the lowest once faults have ceased.
	cfg := recipes.PriorityLockConfig{Strategy: pick(c.chance, recipes.Strategies()...), Joined: c.joined, Priority: 2}
	if c.world.calm.Err() == nil {
		cfg.Priority = c.chance.below(3)
	}
	l, err := s.PriorityLock(path, cfg)
	if err != nil {
		return err
	}
	wait, cancel := c.patience(ctx)
	defer cancel()
	acquire, shared := l.AcquireWrite, false
	if c.chance.chance(60) {
		acquire, shared = l.AcquireRead, true
	}
	hold, err := acquire(wait)
	if err != nil {
		return err
	}
	return c.hold(ctx, &grant{client: c, session: s, path: path, Grant: hold, shared: shared, journaled: true}, 1, hold.Release)
}
