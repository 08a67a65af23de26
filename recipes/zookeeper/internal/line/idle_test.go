package line_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// idleRequests is what a session that holds locks sends per session timeout while nothing happens:
// ten syncs, and no ping, read or watch beside them. `make test-counts` runs this test, and
// docs/operating.md has the figure.
const idleRequests = 10

// With each strategy, an idle hold costs as many requests as recorded. 5,000 holds of different
// paths cost no more than one. That is more than the number of paths that a session remembers for
// other purposes.
func TestIdleHoldsCostNoMoreThanRecorded(t *testing.T) {
	for _, tt := range []struct {
		strategy recipes.Strategy
		holds    int
	}{{recipes.Handoff, 1}, {recipes.Predecessor, 1}, {recipes.Herd, 1}, {recipes.Handoff, 5000}} {
		zktest.OnVirtualTime(t, func(ctx context.Context, t *testing.T, srv *zkserver.Server, _ recipes.Client) {
			s := must.Get(zookeeper.Dialer(zktest.LinkTo(srv.ServeConn).Dial).Open(ctx, recipes.SessionConfig{Servers: []string{"server"}}))(t)
			defer s.Close(context.Background())
			for n := range tt.holds {
				hold := must.Get(must.Get(s.Lock(fmt.Sprintf("/l/%d", n), recipes.LockConfig{Strategy: tt.strategy}))(t).Acquire(ctx))(t)
				hold.Done() // sets a watch, as for every user of a lock
			}
			time.Sleep(2 * s.Timeout()) // the holds are no longer young
			const timeouts = 10
			before := must.Get(s.Stats(ctx))(t).ByKind
			time.Sleep(timeouts * s.Timeout())
			sent := int64(0)
			for kind, n := range must.Get(s.Stats(ctx))(t).ByKind {
				n -= before[kind]
				sent += n
				if n > 0 && kind != "sync" {
					t.Errorf("%d holds by %s: %d requests %s in %d timeouts", tt.holds, tt.strategy, n, kind, timeouts)
				}
			}
			if sent > timeouts*idleRequests+1 {
				t.Errorf("%d holds by %s: %d requests in %d timeouts; recorded are %d in each", tt.holds, tt.strategy, sent, timeouts, idleRequests)
			}
		})
	}
}

// A hold whose path another client has deleted ends, even if its application does not watch it. It
// then costs nothing.
func TestAHoldWithoutItsPathEnds(t *testing.T) {
	for _, strategy := range []recipes.Strategy{recipes.Handoff, recipes.Predecessor} {
		zktest.OnVirtualTime(t, func(ctx context.Context, t *testing.T, srv *zkserver.Server, s recipes.Client) {
			hold := must.Get(must.Get(s.Lock("/l", recipes.LockConfig{Strategy: strategy}))(t).Acquire(ctx))(t)
			theirs := zktest.Acquire(t, zktest.OpenVirtual(t, srv))
			time.Sleep(s.Timeout()) // the path was inspected
			must.Do(t, theirs.Write(ctx, recipes.Delete(hold.Znode(), recipes.AnyVersion), recipes.Delete("/l", recipes.AnyVersion)))
			time.Sleep(s.Timeout() / 5)
			if err := hold.Err(); !errors.Is(err, recipes.ErrRemoved) {
				t.Errorf("%s: %v", strategy, err)
			}
			before := must.Get(s.Stats(ctx))(t)
			time.Sleep(10 * s.Timeout())
			after := must.Get(s.Stats(ctx))(t)
			reads, events := after.Reads-before.Reads, after.WatchEvents-before.WatchEvents
			if syncs := after.ByKind["sync"] - before.ByKind["sync"]; reads+events+syncs > 0 {
				t.Errorf("%s: %d reads, %d watch events, %d syncs", strategy, reads, events, syncs)
			}
		})
	}
}

// A released hold costs nothing more, whatever happens at its path.
func TestAReleasedHoldIsNotInspected(t *testing.T) {
	zktest.OnVirtualTime(t, func(ctx context.Context, t *testing.T, srv *zkserver.Server, s recipes.Client) {
		must.Get(must.Get(s.Lock("/kept", recipes.LockConfig{}))(t).Acquire(ctx))(t) // so that the session continues to confirm its holds
		hold := must.Get(must.Get(s.Lock("/l", recipes.LockConfig{}))(t).Acquire(ctx))(t)
		theirs := zktest.Acquire(t, zktest.OpenVirtual(t, srv))
		time.Sleep(s.Timeout())
		must.Do(t, hold.Release(ctx))
		before := must.Get(s.Stats(ctx))(t).Reads
		must.Do(t, theirs.Write(ctx, recipes.Create("/l/child", nil)))
		time.Sleep(s.Timeout())
		if n := must.Get(s.Stats(ctx))(t).Reads - before; n != 0 {
			t.Errorf("%d reads", n)
		}
	})
}
