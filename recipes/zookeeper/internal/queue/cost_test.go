package queue_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// Waiting costs no request. As in the text, an element wakes every session that waits: when it
// is put, and again when it is claimed and taken, if the session has listed by then.
func TestWaitingForAnElementCostsNothing(t *testing.T) {
	zktest.OnVirtualTime(t, func(ctx context.Context, t *testing.T, srv *zkserver.Server, producing recipes.Client) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		producer := zktest.QueueOf(t, producing, "/q", recipes.QueueConfig{})

		const waiters = 4
		results := make(chan error, 2*waiters)
		for range waiters {
			q := zktest.QueueOf(t, zktest.OpenVirtual(t, srv), "/q", recipes.QueueConfig{})
			go func() { _, err := q.Take(ctx); results <- err }()
			go func() { _, err := q.Receive(ctx); results <- err }()
		}
		zktest.IdleFor(t, srv, time.Hour)
		for range 2 {
			got := zktest.CostOf(srv, func() {
				must.Get(producer.Put(ctx, nil))(t)
				synctest.Wait()
			})
			if got.Events < waiters || got.Events > 6*waiters { // the first put also creates the queue and its children
				t.Errorf("an element caused %d watch events; %d sessions wait", got.Events, waiters)
			}
			must.Report(t, <-results)
			zktest.IdleFor(t, srv, time.Hour)
		}
		cancel()
		for range 2*waiters - 2 {
			if err := <-results; !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		}
	})
}
