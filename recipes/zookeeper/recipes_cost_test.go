package zookeeper_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// TestASetCostsTheSameForAnyNumberOfContenders: a contender waits for the first lock of its set,
// and holds nothing else.
func TestASetCostsTheSameForAnyNumberOfContenders(t *testing.T) {
	for _, waiters := range []int{1, 10, 1000} {
		zktest.OnVirtualTime(t, func(ctx context.Context, t *testing.T, srv *zkserver.Server, s recipes.Client) {
			joined, granted := make(chan recipes.Place), make(chan recipes.Holds)
			acquire := func() (recipes.Holds, error) {
				var locks []recipes.Lock
				for _, path := range []string{"/set/c", "/set/b", "/set/a"} {
					cfg := recipes.LockConfig{}
					if path == "/set/a" {
						cfg.Joined = func(p recipes.Place) { joined <- p }
					}
					locks = append(locks, must.Get(s.Lock(path, cfg))(t))
				}
				return recipes.AcquireAll(ctx, locks...)
			}
			for range waiters + 2 { // one by one, so that the order is known
				go func() {
					if set, err := acquire(); err == nil {
						granted <- set
					}
				}()
				<-joined
			}
			must.Do(t, (<-granted).Release(ctx)) // creates the containers
			set := <-granted
			// A lock costs a read and an event more if the next holder joins before the release.
			got := zktest.CostOf(srv, func() {
				must.Do(t, set.Release(ctx))
				set = <-granted
			})
			if got.Writes != 5 || got.Reads > 12 || got.Events > 6 {
				t.Errorf("a turn of a set with %d waiters costs %v; want 5 writes, at most 12 reads and 6 events", waiters, got)
			}
		})
	}
}

// TestATurnCostsTheSameForAnyNumberOfCallers: all callers ask at one time. Each of them costs the
// same, whether its turn is due or not.
func TestATurnCostsTheSameForAnyNumberOfCallers(t *testing.T) {
	for _, waiters := range []int{1, 10, 1000} {
		zktest.OnVirtualTime(t, func(ctx context.Context, t *testing.T, srv *zkserver.Server, s recipes.Client) {
			joined, granted := make(chan struct{}), make(chan recipes.Hold)
			record := must.Get(s.Configuration("/turns"))(t)
			for range waiters + 1 {
				go func() {
					l := must.Get(s.Lock("/turns", recipes.LockConfig{Joined: func(recipes.Place) { joined <- struct{}{} }}))(t)
					if hold, err := l.Acquire(ctx); err == nil {
						granted <- hold
					}
				}()
				<-joined
			}
			hold := <-granted
			must.Do(t, must.Get(recipes.OncePer(ctx, hold, record, time.Hour))(t).Count(ctx))
			must.Do(t, hold.Release(ctx))
			got := zktest.CostOf(srv, func() {
				for range waiters {
					hold = <-granted
					if _, err := recipes.OncePer(ctx, hold, record, time.Hour); !errors.As(err, new(*recipes.NotDueError)) {
						t.Errorf("error %v", err)
					}
					must.Do(t, hold.Release(ctx))
				}
			})
			t.Logf("%d callers that are too early: %v", waiters, got)
			// Each confirmation of the session reads the path once more, for contenders of other
			// libraries.
			if n := int64(waiters); got.Writes != 4*n || got.Reads > 3*n+n/100 || got.Events > 2*n {
				t.Errorf("%d callers that are too early cost %v; want 4 writes, and at most 3 reads and 2 events, for each", n, got)
			}
		})
	}
}
