package simulation

import (
	"context"
	"testing"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// TestSimulationOfSets simulates AcquireAll.
func TestSimulationOfSets(t *testing.T) {
	simulateEach(t, number(40, 40)/20,
		scenario{name: "several locks", line: setPaths[1], paths: setPaths, begin: sets},
		scenario{name: "several locks through a plugin", line: setPaths[1], paths: setPaths, begin: sets, open: openThroughPlugin, hop: true})
}

var setPaths = []string{"/set/1", "/set/2", "/set/3"}

// sets has clients hold two of three locks. Each path is checked like a lock: one client holds
// it at a time, its tokens grow, and its journal has no entry of an earlier holder. If two
// clients waited for each other, no turn would end.
func sets(*World) game {
	return game{turn: func(ctx context.Context, c *client, s recipes.Client) error {
		var locks []recipes.Lock
		out := c.chance.below(len(setPaths))
		for i := range 2 {
			l, err := s.Lock(setPaths[(out+1+i)%len(setPaths)], recipes.LockConfig{Strategy: pick(c.chance, recipes.Strategies()...), Joined: c.joined})
			if err != nil {
				return err
			}
			locks = append(locks, l)
		}
		wait, cancel := c.patience(ctx)
		defer cancel()
		all, err := recipes.AcquireAll(wait, locks...)
		if err != nil {
			return err
		}
		var grants []*grant
		for _, l := range locks {
			g := &grant{client: c, session: s, path: l.Path(), journaled: true, Grant: setGrant{all, all.Tokens()[l.Path()]}}
			c.world.ledger.enter(g, 1)
			grants = append(grants, g)
		}
		for _, g := range grants {
			c.work(ctx, g)
		}
		for _, g := range grants {
			c.world.ledger.leave(g)
		}
		return all.Release(ctx)
	}}
}

// setGrant is the grant of one path of several.
type setGrant struct {
	recipes.Holds
	token recipes.Token
}

func (g setGrant) Token() recipes.Token { return g.token }
