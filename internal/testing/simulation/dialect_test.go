package simulation

import (
	"context"
	"sync"
	"time"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// dialectScenarios have contenders in a dialect. The libraries themselves contend with ours in
// package interop.
var dialectScenarios = []scenario{
	{name: "lock in a dialect", line: dialectLine, paths: []string{dialectLine}, begin: dialectLocks},
	{name: "election in a dialect", line: dialectLine, paths: []string{dialectLine}, begin: dialectElections},
	{name: "shared lock in a dialect", line: dialectLine, paths: []string{dialectLine}, begin: dialectSharedLocks},
	{name: "semaphore in a dialect", begin: dialectSemaphores},
	{name: "double barrier in a dialect", begin: dialectRounds, waits: true},
}

// allScenarios are the scenarios from which a seed chooses.
var allScenarios = append(append([]scenario(nil), scenarios...), dialectScenarios...)

// scenarioOf returns the scenario of a seed.
func scenarioOf(seed uint64) scenario { return allScenarios[seed%uint64(len(allScenarios))] }

func otherDialect(w *World) recipes.Dialect { return pick(w.chance, recipes.Curator, recipes.Kazoo) }

const dialectLine = "/line"

func dialectLocks(w *World) game {
	d := otherDialect(w)
	return game{turn: func(ctx context.Context, c *client, s recipes.Client) error {
		return lockTurn(ctx, c, s, dialectLine, d, recipes.Strategies())
	}}
}

func dialectElections(w *World) game {
	d := otherDialect(w)
	return game{turn: func(ctx context.Context, c *client, s recipes.Client) error {
		return electionTurn(ctx, c, s, dialectLine, d)
	}}
}

func dialectSharedLocks(w *World) game {
	d := otherDialect(w)
	return game{turn: func(ctx context.Context, c *client, s recipes.Client) error {
		return sharedTurn(ctx, c, s, dialectLine, d)
	}}
}

func dialectSemaphores(w *World) game {
	d, permits := otherDialect(w), 1+w.chance.below(3)
	return game{turn: func(ctx context.Context, c *client, s recipes.Client) error {
		return semaphoreTurn(ctx, c, s, dialectLine, d, permits)
	}}
}

// rounds records the members of a double barrier in a dialect, where more members may enter together
// than the size says. Each member has a new name, so members of different rounds cannot be confused.
type rounds struct {
	world   *World
	dialect recipes.Dialect
	size    int

	mu     sync.Mutex
	parts  map[*client]bool  // clients that are in a turn
	ended  int               // turns that ended without a leave: the znode may exist
	inside map[string]*grant // members inside, by znode
}

func dialectRounds(w *World) game {
	r := &rounds{world: w, dialect: otherDialect(w), size: 2 + w.chance.below(2), parts: make(map[*client]bool), inside: make(map[string]*grant)}
	return game{turn: r.turn}
}

func (r *rounds) turn(ctx context.Context, c *client, s recipes.Client) error {
	wait, cancel := c.patience(ctx)
	defer cancel()
	r.mu.Lock()
	r.parts[c] = true
	before := r.ended
	r.mu.Unlock()
	err := r.pass(ctx, wait, c, s, before)
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.parts, c)
	if err != nil {
		r.ended++
	}
	return err
}

func (r *rounds) pass(ctx, wait context.Context, c *client, s recipes.Client, before int) error {
	b, err := s.DoubleBarrier(dialectLine, recipes.DoubleBarrierConfig{Size: r.size, Dialect: r.dialect})
	if err != nil {
		return err
	}
	p, err := b.Enter(wait, nil)
	if err != nil {
		return err
	}
	r.enter(&grant{client: c, session: s, path: dialectLine, Grant: p}, p.Members(), before)
	_ = c.step(ctx, c.chance.about(200*time.Millisecond))
	r.mu.Lock()
	delete(r.inside, p.Znode())
	r.mu.Unlock()
	err = p.Leave(ctx)
	c.note("left %s: %v", p.Znode(), err)
	if err == nil {
		r.left(c, p.Members())
	}
	return err
}

// enter checks that our member does not enter with too few others. It counts the clients that are
// in a turn, and the turns that have failed since this one began: their znodes may exist.
func (r *rounds) enter(g *grant, members []string, before int) {
	g.client.note("entered as %s with %v", g.Znode(), members)
	r.mu.Lock()
	defer r.mu.Unlock()
	if n := len(r.parts) + r.ended - before; len(members) < r.size && n < r.size {
		r.world.fail(g.client.name, "entered as %s with %v; %d take part", g.Znode(), members, n)
	}
	r.inside[g.Znode()] = g
}

// left checks that none of the members that entered with the client is still inside.
func (r *rounds) left(c *client, members []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, znode := range members {
		if g := r.inside[znode]; g != nil && g.active() && !r.world.wasForced(g.session.ID()) {
			r.world.fail(c.name, "has left while %s is inside", znode)
		}
	}
}
