package simulation

import (
	"context"
	"errors"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// locks is a game in which clients take turns with a lock. Their strategies are mixed, or all the
// same.
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

func elections(*World) game {
	return game{turn: func(ctx context.Context, c *client, s recipes.Client) error {
		return electionTurn(ctx, c, s, "/election", "")
	}}
}

// electionTurn campaigns, acknowledges where the dialect supports that, and leads for a while.
func electionTurn(ctx context.Context, c *client, s recipes.Client, path string, d recipes.Dialect) error {
	e, err := s.Election(path, recipes.ElectionConfig{Dialect: d, Strategy: pick(c.chance, recipes.Strategies()...), Joined: c.joined})
	if err != nil {
		return err
	}
	return take(ctx, c, &grant{session: s, path: path, journaled: true}, 1, func(wait context.Context) (recipes.Leadership, error) {
		leadership, err := e.Campaign(wait, []byte(c.name))
		if err == nil && d == "" && c.chance.chance(50) {
			err := leadership.Acknowledge(ctx, nil)
			c.note("acknowledged %s: %v", leadership.Znode(), err)
		}
		return leadership, err
	}, recipes.Leadership.Resign)
}

const namesPath = "/names"

func names(*World) game { return game{turn: nameTurn} }

// nameTurn registers a name that only one client can have, and unregisters it.
func nameTurn(ctx context.Context, c *client, s recipes.Client) error {
	n, err := s.Names(namesPath)
	if err != nil {
		return err
	}
	err = take(ctx, c, &grant{session: s, path: namesPath, journaled: true}, 1, func(ctx context.Context) (recipes.Registration, error) {
		return n.Register(ctx, "owner", []byte(c.name))
	}, recipes.Registration.Unregister)
	if errors.Is(err, recipes.ErrNodeExists) {
		return nil // a name has no wait queue
	}
	return err
}
