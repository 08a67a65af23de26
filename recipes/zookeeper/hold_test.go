package zookeeper_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// Whatever a session holds, its clock counts from what the leader is known to have, which
// a sync asks for. When it holds nothing it asks for nothing.
func TestWhoHoldsAnythingAsksTheLeader(t *testing.T) {
	for _, k := range things() {
		t.Run(k.name, func(t *testing.T) {
			onVirtualTime(t, func(ctx context.Context, t *testing.T, srv *zkserver.Server, s recipes.Session) {
				syncs := func() int64 {
					synctest.Wait()
					before := srv.Counters()
					time.Sleep(s.Timeout())
					synctest.Wait()
					return srv.Counters().Sub(before).Requests[zkserver.OpSync]
				}
				get, _, _ := k.at(t, s, "/path")
				held := must[recipes.Grant](t)(get(ctx))
				if n := syncs(); n < 5 {
					t.Errorf("%d syncs within a timeout while it holds", n)
				}
				if err := k.giveBack(ctx, held); err != nil {
					t.Fatal(err)
				}
				syncs() // the last one may be under way
				if n := syncs(); n != 0 {
					t.Errorf("%d syncs within a timeout after it has given back", n)
				}
			})
		})
	}
}

// Readers that wait behind a writer hold nothing, however many there are.
func TestReadersBehindAWriterDoNotHold(t *testing.T) {
	onVirtualTime(t, func(ctx context.Context, t *testing.T, srv *zkserver.Server, s recipes.Session) {
		l := must[recipes.SharedLock](t)(s.SharedLock("/shared", recipes.SharedLockConfig{}))
		reader := must[recipes.SharedHold](t)(l.AcquireRead(ctx))
		got := make(chan recipes.SharedHold, 3)
		enter := func(acquire func(context.Context) (recipes.SharedHold, error)) {
			go func() { got <- must[recipes.SharedHold](t)(acquire(ctx)) }()
			synctest.Wait()
		}
		enter(l.AcquireWrite)
		enter(l.AcquireRead)
		enter(l.AcquireRead)
		holds := 0
		for _, c := range must[[]recipes.Contender](t)(l.Contenders(ctx)) {
			if c.Holds {
				holds++
				if c.Znode != reader.Znode() {
					t.Errorf("%s holds", c.Znode)
				}
			}
		}
		if holds != 1 {
			t.Errorf("%d hold; want the first reader alone", holds)
		}
		for hold := reader; ; hold = <-got {
			if err := hold.Release(ctx); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if line := must[[]recipes.Contender](t)(l.Contenders(ctx)); len(line) == 0 {
				return
			}
		}
	})
}
