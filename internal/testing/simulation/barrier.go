package simulation

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/zkrecipes/zkrecipes/recipes"
)

const gatePath = "/gate"

// gate is what is known of a barrier, which the first client sets and removes.
type gate struct {
	world *World

	mu    sync.Mutex
	set   bool // it is known to be in place
	epoch int  // counts the times that this became known
}

func barriers(w *World) game {
	g := &gate{world: w}
	return game{turn: g.turn}
}

func (g *gate) turn(ctx context.Context, c *client, s recipes.Client) error {
	b, err := s.Barrier(gatePath)
	if err != nil {
		return err
	}
	wait, cancel := c.patience(ctx)
	defer cancel()
	if c.number == 1 {
		return g.keep(ctx, wait, c, b)
	}
	epoch := g.known()
	if err := b.Wait(wait); err != nil {
		return err
	}
	c.note("passed")
	// Where followers lag, the session's server may not know of the barrier yet.
	if !c.isDead() && epoch > 0 && g.known() == epoch && len(g.world.followers) == 0 {
		g.world.fail(c.name, "passed a barrier that was in place all the time")
	}
	return nil
}

// keep sets the barrier for a while, and then removes it for a while.
func (g *gate) keep(ctx, wait context.Context, c *client, b recipes.Barrier) error {
	err := b.Set(wait, nil)
	c.note("set: %v", err)
	if err == nil && !c.isDead() {
		g.know(true)
	}
	if err := c.step(ctx, c.chance.about(300*time.Millisecond)); err != nil {
		g.know(false) // another process follows
		return err
	}
	if err != nil {
		return err
	}
	g.know(false)
	err = b.Remove(wait)
	c.note("removed: %v", err)
	if err == nil || errors.Is(err, recipes.ErrUnknownOutcome) {
		_ = c.step(ctx, c.chance.about(300*time.Millisecond))
	}
	return err
}

func (g *gate) know(set bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.set = set; set {
		g.epoch++
	}
}

// known is the epoch of the barrier that is known to be in place, or 0.
func (g *gate) known() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.set {
		return 0
	}
	return g.epoch
}
