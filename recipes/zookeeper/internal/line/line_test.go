package line_test

import (
	"context"
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// queueUp makes n contenders of one session join, one after the other. The channel receives the
// index of each contender when it is granted.
func queueUp(ctx context.Context, t *testing.T, s recipes.Recipes, path string, strategy recipes.Strategy, n int) <-chan int {
	t.Helper()
	order := make(chan int, n)
	var all sync.WaitGroup
	t.Cleanup(all.Wait)
	for i := range n {
		joined := make(chan struct{})
		l := must.Get(s.Lock(path, recipes.LockConfig{Strategy: strategy, Joined: func(p recipes.Place) { close(joined) }}))(t)
		all.Go(func() {
			hold, err := l.Acquire(ctx)
			if err != nil {
				t.Errorf("contender %d: %v", i, err)
				order <- -1
				return
			}
			order <- i
			if err := hold.Release(ctx); err != nil {
				t.Errorf("contender %d: release: %v", i, err)
			}
		})
		select {
		case <-joined:
		case <-ctx.Done():
			t.Fatal("cannot join")
		}
	}
	return order
}

// ZooKeeper 3.8.0 does not wrap: it gives the number 2147483647 to every later znode. A GUID must
// not decide which contender is first.
func TestContendersWithTheSameNumberKeepTheirOrder(t *testing.T) {
	for _, strategy := range recipes.Strategies() {
		srv := zktest.Embedded(t)
		s, ctx := zktest.Open(t, srv), zktest.Bounded(t)
		l := must.Get(s.Lock("/stuck", recipes.LockConfig{Strategy: strategy}))(t)
		first := must.Get(l.Acquire(ctx))(t) // makes the path
		must.Do(t, first.Release(ctx))
		srv.SetFault(func(r zkserver.Request) zkserver.Fault {
			if zktest.Creates(r.Op) {
				must.Report(t, srv.SetSequence("/stuck", math.MaxInt32))
			}
			return zkserver.Fault{}
		})
		hold := must.Get(l.Acquire(ctx))(t)
		order := queueUp(ctx, t, s, "/stuck", strategy, 8)
		for _, c := range must.Get(l.Contenders(ctx))(t) {
			if c.Sequence != math.MaxInt32 {
				t.Fatalf("%s does not have the same number", c.Znode)
			}
		}
		must.Do(t, hold.Release(ctx))
		for want := range 8 {
			if got := <-order; got != want {
				t.Fatalf("contender %d was granted as number %d", got, want)
			}
		}
	}
}

// While creations are in progress, ZooKeeper's counter continues past 2147483647. Afterwards it
// returns to that number. So a new contender may have a smaller number than the holder.
func TestALaterContenderWithASmallerNumberWaits(t *testing.T) {
	for _, strategy := range recipes.Strategies() {
		t.Run(string(strategy), func(t *testing.T) {
			zktest.OnEmbedded(t, func(s *zktest.Scene, srv *zkserver.Server) {
				joinAs := func(number int32) *zktest.Contender {
					srv.SetFault(func(r zkserver.Request) zkserver.Fault {
						if zktest.Creates(r.Op) {
							must.Report(t, srv.SetSequence(s.Path, number))
						}
						return zkserver.Fault{}
					})
					return s.JoinWith(s.Session(), strategy)
				}
				s.Release(s.Hold(s.Join())) // makes the path
				cs := []*zktest.Contender{joinAs(math.MinInt32 + 1), joinAs(math.MaxInt32), joinAs(math.MinInt32), joinAs(math.MaxInt32)}
				for i, c := range cs {
					hold := s.Hold(c)
					for _, later := range cs[i+1:] {
						select {
						case <-later.Held:
							t.Fatalf("%s is granted while %s holds", later.Place.Znode, c.Place.Znode)
						default:
						}
					}
					s.Release(hold)
				}
			})
		})
	}
}

// CURATOR-264: after a lost reply, the search read a server that had not applied the creation yet,
// and the client created a second znode.
func TestTheSearchForALostCreateSyncsFirst(t *testing.T) {
	for _, strategy := range recipes.Strategies() {
		srv := zktest.Embedded(t)
		s, ctx := zktest.Open(t, srv), zktest.Bounded(t)
		var after []zkserver.Op
		lost := false
		srv.SetFault(func(r zkserver.Request) zkserver.Fault {
			if lost {
				after = append(after, r.Op)
			}
			if zktest.Creates(r.Op) && !lost && strings.HasSuffix(r.Path, "lock-") && zktest.Exists(srv, "/sync") {
				lost = true
				return zkserver.Fault{DropReply: true}
			}
			return zkserver.Fault{}
		})
		l := must.Get(s.Lock("/sync", recipes.LockConfig{Strategy: strategy}))(t)
		hold := must.Get(l.Acquire(ctx))(t)
		must.Do(t, hold.Release(ctx))
		if len(after) < 2 || after[0] != zkserver.OpSync || after[1] != zkserver.OpGetChildren2 {
			t.Fatalf("after the lost reply came %v", after)
		}
		for _, op := range after {
			if zktest.Creates(op) {
				t.Fatal("created twice")
			}
		}
	}
}
