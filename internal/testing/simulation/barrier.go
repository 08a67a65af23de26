package simulation

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/zkrecipes/zkrecipes/recipes"
)

const gatePath = "/gate"

// gate is the known state of a barrier. Only the first client sets and removes it.
type gate struct {
	world *World

	mu    sync.Mutex
	set   bool // the barrier is known to be set
	epoch int  // how often set has become true
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
	// With followers, the session's server may lag and not have the barrier yet.
	if !c.isDead() && epoch > 0 && g.known() == epoch && len(g.world.followers) == 0 {
		g.world.fail(c.name, "passed a barrier that was set all the time")
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
		g.know(false) // the client's next process may remove the barrier
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

// known returns the epoch of the barrier that is known to be set, or 0.
func (g *gate) known() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.set {
		return 0
	}
	return g.epoch
}
