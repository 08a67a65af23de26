package zookeeper_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// Nobody who waits for a decision asks for anything in an hour of virtual time.
func TestWaitingForADecisionCostsNothing(t *testing.T) {
	for _, v := range recipes.Variants() {
		t.Run(string(v), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zkserver.New(zkserver.Config{})
				defer srv.Close()
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				s, closeSession := openIn(t, srv)
				defer closeSession()
				coordinator := transactionOf(t, s, v)
				if err := coordinator.Begin(ctx, nil, "1", "2", "3"); err != nil {
					t.Fatal(err)
				}
				results := make(chan error, 4)
				go func() { _, err := coordinator.Coordinate(ctx); results <- err }()
				joining := []string{"1", "2", "3"}
				if v == recipes.OwnNodes {
					joining = joining[:2] // one has yet to join
				}
				for _, name := range joining {
					s, closeSession := openIn(t, srv)
					defer closeSession()
					site := must[recipes.Site](t)(transactionOf(t, s, "").Join(ctx, name))
					go func() { _, err := site.Wait(ctx); results <- err }()
				}
				idle(t, srv)
				cancel()
				for range len(joining) + 1 {
					if err := <-results; !errors.Is(err, context.Canceled) {
						t.Error(err)
					}
				}
			})
		})
	}
}
