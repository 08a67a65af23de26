package line_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/go-zookeeper/zk"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// A name, a membership or an element is lost too if its znode cannot be watched again after a reconnect. Its
// owner deletes the znode.
func TestTheZnodeOfAnUnwatchedMemberIsDeletedByItsLeave(t *testing.T) {
	zktest.OnEmbedded(t, func(s *zktest.Scene, srv *zkserver.Server) {
		mine := s.Session()
		names := must.Get(mine.Names(s.Path))(t)
		name := must.Get(names.Register(s.Ctx, "name", nil))(t)
		member := must.Get(must.Get(mine.Group(s.Path, recipes.GroupConfig{}))(t).Join(s.Ctx, nil))(t)
		q := must.Get(mine.Queue(s.Path+"-queue", recipes.QueueConfig{}))(t)
		must.Get(q.Put(s.Ctx, nil))(t)
		element := must.Get(q.Receive(s.Ctx))(t)
		element.Done() // watches the claim
		for giveBack, g := range map[string]struct {
			recipes.Grant
			end func(context.Context) error
		}{"unregister": {name, name.Unregister}, "leave": {member, member.Leave}, "acknowledge": {element, element.Ack}} {
			must.Get(s.Raw.SetACL(g.Znode(), zk.WorldACL(zk.PermAll&^zk.PermRead), -1))(t)
			var once atomic.Bool
			srv.SetFault(func(r zkserver.Request) zkserver.Fault {
				return zkserver.Fault{CloseAfter: r.SessionID == mine.ID() && !once.Swap(true)}
			})
			_, _ = names.Lookup(s.Ctx, "another") // the answer to this call is the last on the connection
			select {
			case <-g.Done():
			case <-s.Ctx.Done():
				t.Fatal("Done has not closed")
			}
			if err := g.Err(); !errors.Is(err, recipes.ErrNotHeld) || errors.Is(err, recipes.ErrRemoved) {
				t.Errorf("lost with %v", err)
			}
			if !s.Exists(g.Znode()) {
				t.Error("the znode was deleted before its owner stopped")
			}
			if err := g.end(s.Ctx); !errors.Is(err, recipes.ErrNotHeld) {
				t.Errorf("%s: %v", giveBack, err)
			}
			for s.Exists(g.Znode()) { // an element's claim is deleted in the background
				if s.Ctx.Err() != nil {
					t.Fatalf("the znode still exists after %s", giveBack)
				}
			}
		}
	})
}

// While the server throttles, the session tries again to watch. Grants are held, and a later
// deletion is noticed.
func TestGrantsAreWatchedAgainThoughTheServerThrottles(t *testing.T) {
	zktest.OnEmbedded(t, func(s *zktest.Scene, srv *zkserver.Server) {
		mine := s.Session()
		names := must.Get(mine.Names(s.Path + "-names"))(t)
		hold := s.Hold(s.JoinWith(mine, recipes.Predecessor))
		for _, g := range []recipes.Grant{hold, must.Get(names.Register(s.Ctx, "name", nil))(t)} {
			var closed atomic.Bool
			var throttled atomic.Int32
			srv.SetFault(func(r zkserver.Request) zkserver.Fault {
				watches := r.Path == g.Znode() && (r.Op == zkserver.OpGetData || r.Op == zkserver.OpGetChildren2)
				return zkserver.Fault{
					CloseAfter: r.SessionID == mine.ID() && !closed.Swap(true),
					Throttle:   r.SessionID == mine.ID() && watches && throttled.Add(1) <= 3,
				}
			})
			_, _ = names.Lookup(s.Ctx, "another") // the answer to this call is the last on the connection
			// The server answers the fourth read.
			for throttled.Load() <= 3 {
				select {
				case <-g.Done():
					t.Fatalf("lost: %v", g.Err())
				case <-s.Ctx.Done():
					t.Fatal("not watched again")
				default:
				}
			}
			must.Do(t, s.Raw.Delete(g.Znode(), -1))
			select {
			case <-g.Done():
			case <-s.Ctx.Done():
				t.Fatal("Done has not closed")
			}
			if err := g.Err(); !errors.Is(err, recipes.ErrRemoved) {
				t.Error(err)
			}
		}
	})
}

// The guard is deleted after the place. If the release's context is done by then, the release does
// not wait for that.
func TestAReleaseDoesNotWaitForAGuardLongerThanItsContext(t *testing.T) {
	zktest.OnVirtualTime(t, func(ctx context.Context, t *testing.T, srv *zkserver.Server, s recipes.Client) {
		hold := must.Get(must.Get(s.Lock("/l", recipes.LockConfig{}))(t).Acquire(ctx))(t)
		must.Do(t, hold.Write(ctx))
		impatient, giveUp := context.WithCancel(ctx)
		proceed := make(chan struct{})
		srv.SetFault(func(r zkserver.Request) (f zkserver.Fault) {
			if strings.Contains(r.Path, "-guard-") {
				giveUp()
				f.Hold = proceed
			}
			return f
		})
		released := make(chan error, 1)
		go func() { released <- hold.Release(impatient) }()
		synctest.Wait()
		select {
		case err := <-released:
			if !errors.Is(err, context.Canceled) {
				t.Errorf("released with %v", err)
			}
		default:
			t.Error("the release waits")
		}
		close(proceed)
		synctest.Wait()
		if left := zktest.Layout(srv, "/l"); strings.Contains(strings.Join(left, " "), "-guard-") {
			t.Errorf("left %q", left)
		}
	})
}

// A grant creates one guard, however often the read of its place fails after that. The guard is
// deleted with the grant.
func TestGuardsDoNotPileUp(t *testing.T) {
	srv, ctx := zktest.Embedded(t), zktest.Bounded(t)
	s := zktest.Open(t, srv)
	hold := must.Get(must.Get(s.Lock("/line", recipes.LockConfig{Strategy: recipes.Handoff}))(t).Acquire(ctx))(t)
	guards := func() (n int) {
		for _, node := range srv.Tree() {
			if strings.Contains(node.Path, "-guard-") {
				n++
			}
		}
		return n
	}
	srv.SetFault(func(r zkserver.Request) zkserver.Fault {
		return zkserver.Fault{Throttle: r.Op == zkserver.OpExists}
	})
	for range 5 {
		if err := hold.Write(ctx, recipes.Create("/x", nil)); !errors.Is(err, recipes.ErrThrottled) {
			t.Errorf("a write whose read is throttled: %v", err)
		}
	}
	if n := guards(); n != 1 {
		t.Errorf("%d guards after five refused writes", n)
	}
	srv.SetFault(nil)
	for _, path := range []string{"/y", "/z"} {
		must.Report(t, hold.Write(ctx, recipes.Create(path, nil)))
	}
	if n := guards(); n != 1 {
		t.Errorf("%d guards after the writes", n)
	}
	must.Do(t, hold.Release(ctx))
	if n := guards(); n != 0 {
		t.Errorf("%d guards are left", n)
	}
}
