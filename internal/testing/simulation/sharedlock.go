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

// readOrWrite acquires one of the two modes for g.
func readOrWrite[G any](c *client, g *grant, read, write func(context.Context) (G, error)) func(context.Context) (G, error) {
	return func(ctx context.Context) (G, error) {
		if g.shared = c.chance.chance(60); g.shared {
			return read(ctx)
		}
		return write(ctx)
	}
}

// sharedTurn reads, or writes, or writes and then reads.
func sharedTurn(ctx context.Context, c *client, s recipes.Client, path string, d recipes.Dialect) error {
	l, err := s.SharedLock(path, recipes.SharedLockConfig{Dialect: d, Strategy: pick(c.chance, recipes.Strategies()...), Joined: c.joined})
	if err != nil {
		return err
	}
	wait, cancel := c.patience(ctx)
	defer cancel()
	g := &grant{client: c, session: s, path: path, journaled: true}
	hold, err := readOrWrite(c, g, l.AcquireRead, l.AcquireWrite)(wait)
	if err != nil {
		return err
	}
	g.Grant = hold
	if g.shared || c.chance.chance(70) {
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

func sharedKind(c *client) kind {
	strategy, shared := choose(c, recipes.Strategies()...), choose(c, true, false)
	acquire := recipes.SharedLock.AcquireWrite
	if shared {
		acquire = recipes.SharedLock.AcquireRead
	}
	return kindOf("/shared", 1, shared, func(s recipes.Client, joined func(recipes.Place)) (recipes.SharedLock, error) {
		return s.SharedLock("/shared", recipes.SharedLockConfig{Strategy: strategy, Joined: joined})
	}, acquire, recipes.SharedHold.Release)
}
