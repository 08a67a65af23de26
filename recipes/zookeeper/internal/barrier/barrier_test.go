package barrier_test

import (
	"errors"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// A server sends no event about a znode to a client that may not read it.
func TestABarrierThatMayNotBeReadIsNotWaitedFor(t *testing.T) {
	zktest.OnBoth(t, func(s *zktest.Scene) {
		must.Get(s.Raw.Create(s.Path, nil, 0, zk.WorldACL(zk.PermAll&^zk.PermRead)))(s)
		if err := zktest.BarrierAt(s.T, s.Session(), s.Path).Wait(s.Ctx); !errors.Is(err, recipes.ErrAccessDenied) {
			s.Error(err)
		}
	})
}

func TestABarrierIsWaitedForWhateverItHolds(t *testing.T) {
	zktest.OnEmbedded(t, func(s *zktest.Scene, srv *zkserver.Server) {
		waiter := s.Session()
		if _, err := s.Raw.Create(s.Path, make([]byte, 128<<10), 0, zk.WorldACL(zk.PermAll)); err != nil { // more than the session's MaxPacket
			s.Fatal(err)
		}
		waited := zktest.GoDo(s.Ctx, zktest.BarrierAt(s.T, waiter, s.Path).Wait)
		zktest.AwaitWatches(s.Ctx, s.T, srv, 1)
		must.Do(s, s.Raw.Delete(s.Path, -1))
		must.Report(s, <-waited)
	})
}

// After a lost reply, Remove sends the removal again only for the same barrier. Set sends the
// creation again only if no client can have removed the barrier.
func TestABarrierIsRemovedAndPlacedOnce(t *testing.T) {
	srv := zktest.Embedded(t)
	s, other, ctx := zktest.Open(t, srv), zktest.Open(t, srv), zktest.Bounded(t)
	mine, theirs := zktest.BarrierAt(t, s, "/deep/b"), zktest.BarrierAt(t, other, "/deep/b")
	must.Do(t, theirs.Set(ctx, nil))
	meanwhile := func(op zkserver.Op, act func() error) {
		dropped, acted := false, false
		srv.SetFault(func(r zkserver.Request) zkserver.Fault {
			switch {
			case r.SessionID != s.ID():
			case r.Op == op && !dropped:
				dropped = true
				return zkserver.Fault{DropReply: true}
			case dropped && !acted:
				acted = true
				must.Report(t, act())
			}
			return zkserver.Fault{}
		})
	}
	meanwhile(zkserver.OpDelete, func() error { return theirs.Set(ctx, []byte("next")) })
	must.Report(t, mine.Remove(ctx))
	if placed, err := theirs.IsSet(ctx); !placed || err != nil {
		t.Errorf("the next barrier: set %v, %v; want it set", placed, err)
	}
	must.Do(t, theirs.Remove(ctx))
	meanwhile(zkserver.OpCreate, func() error { return theirs.Remove(ctx) })
	if err := mine.Set(ctx, nil); !errors.Is(err, recipes.ErrUnknownOutcome) {
		t.Errorf("set, and removed by another client: %v", err)
	}
	if placed, err := theirs.IsSet(ctx); placed || err != nil {
		t.Errorf("set again: %v, %v", placed, err)
	}
}
