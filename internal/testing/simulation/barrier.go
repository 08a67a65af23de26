package simulation

import (
	"context"
	"errors"
	"slices"
	"strings"
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

const barrierSize = 2

// generations records which members entered a double barrier together.
type generations struct {
	world *World

	mu     sync.Mutex
	of     map[string]string   // generation of a member, by znode
	inside map[string][]*grant // members between Enter and Leave, by generation
}

func doubleBarriers(w *World) game {
	b := &generations{world: w, of: make(map[string]string), inside: make(map[string][]*grant)}
	return game{turn: b.turn}
}

func (b *generations) turn(ctx context.Context, c *client, s recipes.Client) error {
	barrier, err := s.DoubleBarrier("/barrier", recipes.DoubleBarrierConfig{Size: barrierSize})
	if err != nil {
		return err
	}
	wait, cancel := c.patience(ctx)
	defer cancel()
	p, err := barrier.Enter(wait, nil)
	if err != nil {
		return err
	}
	g := &grant{client: c, session: s, path: "/barrier", Grant: p}
	generation := b.enter(g, p.Members())
	_ = c.step(ctx, c.chance.about(200*time.Millisecond))
	b.leave(g, generation)
	err = p.Leave(ctx)
	c.note("left %s: %v", p.Znode(), err)
	if err == nil {
		b.left(g, generation)
	}
	return err
}

// enter checks that as many members enter together as the size says, and that each belongs to one
// generation.
func (b *generations) enter(g *grant, members []string) string {
	g.client.note("entered as %s with %v", g.Znode(), members)
	generation := strings.Join(members, " ")
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(members) != barrierSize || !slices.Contains(members, g.Znode()) {
		b.world.fail(g.client.name, "entered as %s with %v", g.Znode(), members)
	}
	for _, m := range members {
		if other, known := b.of[m]; known && other != generation {
			b.world.fail(g.client.name, "entered with %s, which had entered with %s", m, other)
		}
		b.of[m] = generation
	}
	b.inside[generation] = append(b.inside[generation], g)
	return generation
}

func (b *generations) leave(g *grant, generation string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.inside[generation] = slices.DeleteFunc(b.inside[generation], func(other *grant) bool { return other == g })
}

// left checks that no member of the generation is still inside.
func (b *generations) left(g *grant, generation string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, other := range b.inside[generation] {
		if other.active() && !b.world.wasForced(other.session.ID()) {
			b.world.fail(g.client.name, "has left while %s is inside", other.Znode())
		}
	}
}
