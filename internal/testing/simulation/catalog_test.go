package simulation

import (
	"context"
	"strings"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/grants"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// TestSimulationOfTheCatalog simulates each way of the catalog that has a wait queue, so that a new
// recipe needs no scenario for what all of them promise. Other scenarios mix the ways of a recipe.
func TestSimulationOfTheCatalog(t *testing.T) {
	withoutRaceDetector(t)
	for _, w := range grants.All() {
		if w.Kind == "" {
			continue
		}
		t.Run(w.Name, func(t *testing.T) {
			once := scenario{name: w.Name, line: catalogPath, unwrapped: true, paths: []string{catalogPath}, begin: turnsOf(w)}
			dies := surviving(once)
			dies.begin = twice(once.begin)
			simulateEach(t, number(100, 50)/50, once, dies)
		})
	}
}

const catalogPath = "/catalog"

// turnsOf has clients take turns by one way. There is one permit, so only readers hold together.
func turnsOf(w grants.Way) func(*World) game {
	return func(*World) game {
		return game{turn: func(ctx context.Context, c *client, s recipes.Client) error {
			e, err := w.Open(s, catalogPath, grants.Options{Strategy: pick(c.chance, recipes.Strategies()...), Joined: c.joined})
			if err != nil {
				return err
			}
			g := &grant{session: s, path: catalogPath, journaled: true, shared: strings.HasSuffix(w.Method, "Read")}
			return take(ctx, c, g, 1, e.Get, func(held recipes.Grant, ctx context.Context) error { return w.GiveBack(ctx, held) })
		}}
	}
}
