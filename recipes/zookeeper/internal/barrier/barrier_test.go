package barrier_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/go-zookeeper/zk"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

func TestBarrierCosts(t *testing.T) {
	zktest.OnVirtualTime(t, func(ctx context.Context, t *testing.T, srv *zkserver.Server, s recipes.Client) {
		must.Get(must.Get(s.Group("/app/g", recipes.GroupConfig{}))(t).Join(ctx, nil))(t) // creates the path
		b := zktest.BarrierAt(t, s, "/app/b")
		watches := srv.Watches()
		zktest.Costs(t, srv, "placing", 1, 1, 0, func() { _ = b.Set(ctx, nil) })
		if got, want := zktest.Shape(srv, "/app"), "b g g/_c_<guid>-member-0000000000"; got != want {
			t.Errorf("znodes %q; want %q", got, want)
		}
		waited := make(chan error, 1)
		zktest.Costs(t, srv, "beginning to wait", 0, 1, 0, func() {
			go func() { waited <- b.Wait(ctx) }()
			synctest.Wait()
		})
		// Waiting sends nothing.
		zktest.Idle(t, srv)
		zktest.Costs(t, srv, "removing, with one who waits", 1, 2, 1, func() {
			_ = b.Remove(ctx)
			must.Report(t, <-waited)
		})
		zktest.Costs(t, srv, "passing", 0, 1, 0, func() { _ = b.Wait(ctx) })
		// CURATOR-14: an abandoned wait leaves no watch for a barrier that may never be set
		// again.
		if n := srv.Watches(); n != watches {
			t.Errorf("%d watches; want %d, as before the first wait", n, watches)
		}
	})
}

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

// ZOOKEEPER-1011: the barrier of the official tutorial has a race. Between the read and the
// wait, the barrier is removed and set again. A waiter that should pass must not hang.
func TestABarrierRemovedWhileItIsRead(t *testing.T) {
	srv := zktest.Embedded(t)
	waiter, other, ctx := zktest.Open(t, srv), zktest.Open(t, srv), zktest.Bounded(t)
	b := zktest.BarrierAt(t, other, "/b")
	must.Do(t, b.Set(ctx, nil))
	looks := 0
	srv.SetFault(func(r zkserver.Request) zkserver.Fault {
		if r.SessionID == waiter.ID() && r.Op == zkserver.OpGetData {
			if looks++; looks == 1 {
				return zkserver.Fault{CloseAfter: true}
			}
			must.Report(t, b.Remove(ctx))
		}
		return zkserver.Fault{}
	})
	must.Do(t, zktest.BarrierAt(t, waiter, "/b").Wait(ctx))
	if looks < 2 {
		t.Error("the case was not met")
	}
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
