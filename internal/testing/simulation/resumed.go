package simulation

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// resumed is a scenario in which the clients' sessions are resumed. Their host makes the mistake
// m.
func resumed(name string, m mistake, pick func(*client) kind) scenario {
	what := pick(nil)
	sc := scenario{name: name, open: resumes(m), moves: true, unwrapped: what.unwrapped, begin: func(*World) game { return sessionTurns(pick) }}
	if what.permits == 1 {
		sc.paths = []string{what.path}
	}
	if !what.unqueued {
		sc.line = what.path
	}
	return sc
}

// choose chooses one, or the first without a client.
func choose[T any](c *client, choices ...T) T {
	if c == nil {
		return choices[0]
	}
	return pick(c.chance, choices...)
}

// sessionTurns has up to two contenders of a session take turns with the kind that pick returns.
func sessionTurns(pick func(*client) kind) game {
	one := func(ctx context.Context, c *client, s recipes.Client) error {
		wait, cancel := c.patience(ctx)
		defer cancel()
		what := pick(c)
		k, err := s.(*survivor).acquire(wait, what)
		// While there are faults it waits for a taken name. That is not fair, and some starve.
		for errors.Is(err, recipes.ErrNodeExists) && c.world.calm.Err() == nil && c.step(wait, c.chance.about(50*time.Millisecond)) == nil {
			k, err = s.(*survivor).acquire(wait, what)
		}
		if errors.Is(err, recipes.ErrNodeExists) {
			return nil
		}
		if err != nil {
			return err
		}
		g := &grant{client: c, session: s, path: what.path, Grant: k, shared: what.shared, journaled: what.permits == 1}
		return c.hold(ctx, g, what.permits, k.release)
	}
	return game{turn: func(ctx context.Context, c *client, s recipes.Client) error {
		var second error
		var both sync.WaitGroup
		if c.chance.chance(50) {
			both.Go(func() { second = one(ctx, c, s) })
		}
		first := one(ctx, c, s)
		both.Wait()
		if second != nil && !expected(second) {
			return second
		}
		return first
	}}
}
