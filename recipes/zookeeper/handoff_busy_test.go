package zookeeper_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// A session that has had to wait at a path does not look how long the line is when it
// comes again: it asks for its predecessor by name.
func TestABusyLineIsNotListed(t *testing.T) {
	onVirtualTime(t, func(ctx context.Context, t *testing.T, srv *zkserver.Server, s recipes.Session) {
		at := func(s recipes.Session) recipes.Lock {
			return must[recipes.Lock](t)(s.Lock("/busy", recipes.LockConfig{Strategy: recipes.Handoff}))
		}
		granted := make(chan recipes.Hold, 2)
		wait := func(s recipes.Session) {
			go func() {
				if h, err := at(s).Acquire(ctx); err == nil {
					granted <- h
				}
			}()
			synctest.Wait()
		}
		hold := must[recipes.Hold](t)(at(openVirtual(t, srv)).Acquire(ctx))
		wait(s)
		if err := hold.Release(ctx); err != nil {
			t.Fatal(err)
		}
		hold = <-granted // it has waited
		wait(openVirtual(t, srv))
		if err := hold.Release(ctx); err != nil {
			t.Fatal(err)
		}
		hold = <-granted
		before := srv.Counters()
		wait(s)
		cost := srv.Counters().Sub(before)
		if n := cost.Requests[zkserver.OpGetChildren] + cost.Requests[zkserver.OpGetChildren2] + cost.Requests[zkserver.OpExists]; n != 0 {
			t.Errorf("it joined with %d looks at the line", n)
		}
		if err := hold.Release(ctx); err != nil {
			t.Fatal(err)
		}
		if err := (<-granted).Release(ctx); err != nil {
			t.Fatal(err)
		}
	})
}
