package zookeeper_test

import (
	"context"
	"errors"
	"testing"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// Nobody who waits for a decision asks for anything meanwhile.
func TestWaitingForADecisionCostsNothing(t *testing.T) {
	for _, v := range recipes.Variants() {
		t.Run(string(v), func(t *testing.T) {
			srv, ctx := embedded(t), bounded(t)
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			coordinator := transactionOf(t, open(t, srv), v)
			if err := coordinator.Begin(ctx, nil, "1", "2", "3"); err != nil {
				t.Fatal(err)
			}
			results := make(chan error)
			watches := 0
			waits := func(wait func(context.Context) (recipes.Decision, error), n int) {
				watches += n
				go func() { _, err := wait(ctx); results <- err }()
			}
			joining := []string{"1", "2", "3"}
			if v == recipes.OwnNodes {
				joining = joining[:2] // one has yet to join
			}
			for _, name := range joining {
				site := must[recipes.Site](t)(transactionOf(t, open(t, srv), "").Join(ctx, name))
				if v == recipes.AllWatch {
					waits(site.Wait, 1+3)
				} else {
					waits(site.Wait, 2)
				}
			}
			waits(coordinator.Coordinate, 1+3) // the decision and the sites, or who joins
			awaitWatches(ctx, t, srv, watches)
			quiet(t, srv)
			cancel()
			for range len(joining) + 1 {
				if err := <-results; !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
			}
		})
	}
}
