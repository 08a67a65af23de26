package lock_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// The requests and events of each handoff are exact numbers.
func TestHandoffCosts(t *testing.T) {
	const n = 10
	for _, strategy := range recipes.Strategies() {
		t.Run(string(strategy), func(t *testing.T) {
			srv := zktest.Embedded(t)
			ctx := zktest.Bounded(t)
			l := must.Get(zktest.Open(t, srv).Lock("/cost", recipes.LockConfig{}))(t)
			hold := must.Get(l.Acquire(ctx))(t)
			granted := make(chan recipes.Hold, n)
			for range n {
				s := zktest.Open(t, srv) // one session each, because the waiters of a session share watches
				joined := make(chan struct{})
				waiter := must.Get(s.Lock("/cost", recipes.LockConfig{Strategy: strategy, Joined: func(recipes.Place) { close(joined) }}))(t)
				go func() {
					h, err := waiter.Acquire(ctx)
					if err != nil {
						t.Error(err)
					}
					granted <- h
				}()
				<-joined
			}
			if strategy == recipes.Handoff {
				zktest.AwaitWatches(ctx, t, srv, 1+3*n) // each waiter also watches its own place and the path
			} else {
				zktest.AwaitWatches(ctx, t, srv, 1+n) // the holder watches the path
			}
			for i := range n {
				before := srv.Counters()
				must.Do(t, hold.Release(ctx))
				hold = <-granted
				rest := n - i - 1
				if strategy == recipes.Herd {
					zktest.AwaitWatches(ctx, t, srv, 1+rest) // the waiters that were not granted list again
				}
				cost := srv.Counters().Sub(before)
				want := fmt.Sprintf("%d events, %d reads", 1, 2)
				got := fmt.Sprintf("%d events, %d reads", cost.WatchEvents, cost.Reads)
				switch {
				case strategy == recipes.Herd:
					want = fmt.Sprintf("%d events, %d reads", rest+1, 2*(rest+1))
				case strategy == recipes.Handoff:
					// One event goes to the next contender, and one to the holder unless it never waited.
					want = fmt.Sprintf("%d events, %d reads", min(2, i+1), 0)
				}
				if got != want || cost.Writes != 1 {
					t.Errorf("handoff with %d left: %s, %d writes; want %s, 1 write", rest, got, cost.Writes, want)
				}
			}
		})
	}
}

// After a session has had to wait at a path, its next contender does not check how long the wait
// queue is. It reads its predecessor by name.
func TestABusyLineIsNotListed(t *testing.T) {
	zktest.OnVirtualTime(t, func(ctx context.Context, t *testing.T, srv *zkserver.Server, s recipes.Client) {
		at := func(s recipes.Client) recipes.Lock {
			return must.Get(s.Lock("/busy", recipes.LockConfig{Strategy: recipes.Handoff}))(t)
		}
		granted := make(chan recipes.Hold, 2)
		wait := func(s recipes.Client) {
			go func() {
				if h, err := at(s).Acquire(ctx); err == nil {
					granted <- h
				}
			}()
			synctest.Wait()
		}
		hold := must.Get(at(zktest.OpenVirtual(t, srv)).Acquire(ctx))(t)
		wait(s)
		must.Do(t, hold.Release(ctx))
		hold = <-granted // s has had to wait
		wait(zktest.OpenVirtual(t, srv))
		must.Do(t, hold.Release(ctx))
		hold = <-granted
		before := srv.Counters()
		wait(s)
		cost := srv.Counters().Sub(before)
		if n := cost.Requests[zkserver.OpGetChildren] + cost.Requests[zkserver.OpGetChildren2] + cost.Requests[zkserver.OpExists]; n != 0 {
			t.Errorf("the contender joined with %d checks of the wait queue", n)
		}
		must.Do(t, hold.Release(ctx))
		must.Do(t, (<-granted).Release(ctx))
	})
}
