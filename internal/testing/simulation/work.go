package simulation

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/zkrecipes/zkrecipes/recipes"
)

func (c *client) joined(p recipes.Place) { c.note("joined as %s, %d ahead", p.Znode, p.Position) }

// patience returns a context for waiting. While there are faults, some contexts end after about a
// second.
func (c *client) patience(ctx context.Context) (context.Context, context.CancelFunc) {
	if c.world.calm.Err() == nil && c.chance.chance(15) {
		return context.WithTimeout(ctx, c.chance.about(time.Second))
	}
	return context.WithCancel(ctx)
}

// hold enters a grant into the ledger, works under it, and releases it.
func (c *client) hold(ctx context.Context, g *grant, permits int, release func(context.Context) error) error {
	c.world.ledger.enter(g, permits)
	c.work(ctx, g)
	c.world.ledger.leave(g)
	err := release(ctx)
	c.note("released %s: %v", g.Znode(), err)
	return err
}

// take waits for a grant, acts on it, and releases it. enter waits for the grant; it may set g's
// path and whether g is shared.
func take[G recipes.Grant](
	ctx context.Context, c *client, g *grant, permits int,
	enter func(context.Context) (G, error), release func(G, context.Context) error,
) error {
	wait, cancel := c.patience(ctx)
	defer cancel()
	held, err := enter(wait)
	if err != nil {
		return err
	}
	g.client, g.Grant = c, held
	return c.hold(ctx, g, permits, func(ctx context.Context) error {
		err := release(held, ctx)
		if errors.Is(err, recipes.ErrNotHeld) && !errors.Is(err, recipes.ErrSessionLost) && !c.world.wasForced(g.session.ID()) {
			c.world.fail(c.name, "%s was lost without the loss of its session: %v", g.Znode(), err)
		}
		return err
	})
}

// work makes some guarded writes to the journal. It checks the grant before each write, and the
// pause between check and write can be long. Each grant has its own stream of choices, because one
// client can receive two grants at one instant, in any order.
func (c *client) work(ctx context.Context, g *grant) {
	chance := newStream(c.world.seed, g.Znode())
	for range 1 + chance.below(3) {
		if c.step(ctx, chance.about(100*time.Millisecond)) != nil || g.Err() != nil {
			return
		}
		if c.step(ctx, chance.about(50*time.Millisecond)) != nil {
			return
		}
		entry := g.entry()
		err := g.Write(ctx, recipes.Create(entry, nil))
		c.note("wrote %s: %v", entry, err)
		if err != nil && !expected(err) {
			c.world.fail(c.name, "guarded write: %v", err)
		}
	}
}

// watched is a watch of the operator, and the latest value that the operator has received.
type watched[T any] struct {
	world *World
	end   context.CancelFunc
	ended chan struct{}

	mu     sync.Mutex
	latest T
}

// watch starts a watch, which runs until stop.
func watch[T any](w *World, begin func(context.Context) (<-chan T, error)) *watched[T] {
	ctx, cancel := context.WithCancel(context.Background())
	v := &watched[T]{world: w, end: cancel, ended: make(chan struct{})}
	go v.follow(ctx, begin)
	return v
}

func (v *watched[T]) follow(ctx context.Context, begin func(context.Context) (<-chan T, error)) {
	defer close(v.ended)
	values, err := begin(ctx)
	if err != nil {
		v.world.fail("operator", "%v", err)
		return
	}
	for value := range values {
		v.mu.Lock()
		v.latest = value
		v.mu.Unlock()
	}
	if ctx.Err() == nil {
		v.world.fail("operator", "the watch has ended: %v", v.world.outside.Err())
	}
}

func (v *watched[T]) shows() T {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.latest
}

// await waits until the condition is true, for at most d. It reports whether the condition became
// true.
func (v *watched[T]) await(ctx context.Context, d time.Duration, condition func() bool) bool {
	deadline := time.Now().Add(d)
	for !condition() {
		if time.Now().After(deadline) {
			return false
		}
		_ = sleep(ctx, 50*time.Millisecond)
	}
	return true
}

func (v *watched[T]) stop() {
	v.end()
	<-v.ended
}
