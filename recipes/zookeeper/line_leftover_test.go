package zookeeper_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// endingGrant is a grant that ends, on virtual time.
type endingGrant struct {
	*testing.T
	ctx      context.Context
	srv      *zkserver.Server
	s, other recipes.Client
	grant    recipes.Grant
	giveBack func(context.Context) error
}

func (g *endingGrant) removed() {
	g.Helper()
	if err := barrierAt(g.T, g.other, g.grant.Znode()).Remove(g.ctx); err != nil {
		g.Error(err)
	}
}

// ends are the ways in which a grant ends while its session goes on, each with the reason.
var ends = map[string]struct {
	end    func(*endingGrant) error
	reason error // nil: what end returns is nil
}{
	"given back": {func(g *endingGrant) error { return g.giveBack(g.ctx) }, nil},
	"watched, written, given back": {func(g *endingGrant) error {
		done := g.grant.Done()
		if err := g.grant.Write(g.ctx); err != nil {
			g.Error(err)
		}
		synctest.Wait()
		err := g.giveBack(g.ctx)
		<-done
		return err
	}, nil},
	"given back twice": {func(g *endingGrant) error {
		return errors.Join(g.giveBack(g.ctx), g.giveBack(g.ctx))
	}, nil},
	"deleted by another": {func(g *endingGrant) error {
		done := g.grant.Done()
		if err := g.grant.Write(g.ctx); err != nil {
			g.Error(err)
		}
		synctest.Wait()
		g.removed()
		<-done
		if err := g.grant.Write(g.ctx); !errors.Is(err, recipes.ErrRemoved) {
			g.Errorf("a write then: %v", err)
		}
		return g.giveBack(g.ctx)
	}, recipes.ErrRemoved},
	"deleted by another, and nobody looks": {func(g *endingGrant) error {
		g.removed()
		return g.giveBack(g.ctx)
	}, recipes.ErrRemoved},
	"deleted by another before a write": {func(g *endingGrant) error {
		g.removed()
		if err := g.grant.Write(g.ctx); !errors.Is(err, recipes.ErrRemoved) {
			g.Errorf("the write: %v", err)
		}
		return g.giveBack(g.ctx)
	}, recipes.ErrRemoved},
	"given back while a write is under way": {func(g *endingGrant) error {
		goOn := make(chan struct{})
		var once sync.Once
		g.srv.SetFault(func(r zkserver.Request) (f zkserver.Fault) {
			if r.SessionID == g.s.ID() {
				once.Do(func() { f.Hold = goOn })
			}
			return f
		})
		written, given := make(chan error, 1), make(chan error, 1)
		go func() { written <- g.grant.Write(g.ctx) }()
		synctest.Wait()
		go func() { given <- g.giveBack(g.ctx) }()
		synctest.Wait()
		close(goOn)
		if err := <-written; err != nil && !errors.Is(err, recipes.ErrNotHeld) {
			g.Errorf("the write: %v", err)
		}
		return <-given
	}, nil},
}

// However a grant ends, it leaves nothing at the server, and its session is as idle as
// before: it asks the leader for nothing, for it holds nothing.
func TestNothingIsLeftOfAGrantThatHasEnded(t *testing.T) {
	for _, k := range things() {
		for name, e := range ends {
			t.Run(k.name+"/"+name, func(t *testing.T) {
				t.Parallel()
				onVirtualTime(t, func(ctx context.Context, t *testing.T, srv *zkserver.Server, s recipes.Client) {
					get, _, _ := k.at(t, s, "/left")
					g := &endingGrant{T: t, ctx: ctx, srv: srv, s: s, other: openVirtual(t, srv)}
					g.grant = must.Get(get(ctx))(t)
					g.giveBack = func(ctx context.Context) error { return k.giveBack(ctx, g.grant) }
					if err := e.end(g); e.reason == nil && err != nil || !errors.Is(err, e.reason) {
						t.Errorf("told %v, want %v", err, e.reason)
					}
					srv.SetFault(nil)
					if err := g.grant.Err(); !errors.Is(err, recipes.ErrNotHeld) && !errors.Is(err, recipes.ErrReleased) {
						t.Errorf("it has ended, and says %v", err)
					}
					synctest.Wait()
					for _, n := range srv.Tree() {
						if n.Stat.EphemeralOwner == s.ID() && !strings.Contains(n.Path, "receipt-") {
							t.Errorf("%s is left", n.Path)
						}
					}
					before := srv.Counters()
					time.Sleep(time.Minute)
					if d := srv.Counters().Sub(before); d.Requests[zkserver.OpSync] != 0 || d.Reads != 0 || d.Writes != 0 {
						t.Errorf("in a minute the session has sent %d syncs, %d reads and %d writes", d.Requests[zkserver.OpSync], d.Reads, d.Writes)
					}
				})
			})
		}
	}
}

// A hold whose znode cannot be watched is lost, but its znode is there, and the
// others wait for it.
func TestAHoldThatCannotBeWatchedIsGivenBackByItsRelease(t *testing.T) {
	for _, strategy := range []recipes.Strategy{recipes.Herd, recipes.Predecessor} {
		onBoth(t, func(s *scene) {
			hold := s.hold(s.joinWith(s.session(), strategy))
			if _, err := s.raw.SetACL(hold.Znode(), zk.WorldACL(zk.PermAll&^zk.PermRead), -1); err != nil {
				s.Fatal(err)
			}
			select {
			case <-hold.Done():
			case <-s.ctx.Done():
				s.Fatal("not told")
			}
			if !s.exists(hold.Znode()) {
				s.Fatal("it is gone before the holder has stopped")
			}
			if err := hold.Release(s.ctx); !errors.Is(err, recipes.ErrNotHeld) {
				s.Errorf("release: %v", err)
			}
			for s.exists(hold.Znode()) { // goes on after the release
				if s.ctx.Err() != nil {
					s.Fatal("the znode is still there")
				}
			}
		})
	}
}

// So is a name or a membership whose znode cannot be watched again after the connection was lost.
func TestAMemberThatCannotBeWatchedIsGivenBackByItsLeave(t *testing.T) {
	onEmbedded(t, func(s *scene, srv *zkserver.Server) {
		mine := s.session()
		names := must.Get(mine.Names(s.path))(t)
		name := must.Get(names.Register(s.ctx, "name", nil))(t)
		member := must.Get(must.Get(mine.Group(s.path, recipes.GroupConfig{}))(t).Join(s.ctx, nil))(t)
		for giveBack, g := range map[string]struct {
			recipes.Grant
			end func(context.Context) error
		}{"unregister": {name, name.Unregister}, "leave": {member, member.Leave}} {
			if _, err := s.raw.SetACL(g.Znode(), zk.WorldACL(zk.PermAll&^zk.PermRead), -1); err != nil {
				t.Fatal(err)
			}
			var once atomic.Bool
			srv.SetFault(func(r zkserver.Request) zkserver.Fault {
				return zkserver.Fault{CloseAfter: r.SessionID == mine.ID() && !once.Swap(true)}
			})
			_, _ = names.Lookup(s.ctx, "another") // whose answer is the last on this connection
			select {
			case <-g.Done():
			case <-s.ctx.Done():
				t.Fatal("not told")
			}
			if err := g.Err(); !errors.Is(err, recipes.ErrNotHeld) || errors.Is(err, recipes.ErrRemoved) {
				t.Errorf("lost with %v", err)
			}
			if !s.exists(g.Znode()) {
				t.Error("it is gone before its owner has stopped")
			}
			if err := g.end(s.ctx); !errors.Is(err, recipes.ErrNotHeld) {
				t.Errorf("%s: %v", giveBack, err)
			}
			if s.exists(g.Znode()) {
				t.Errorf("the znode is still there after %s", giveBack)
			}
		}
	})
}

// A server that throttles has refused nothing for good. What is held stands, and its removal is noticed.
func TestWhatIsHeldIsWatchedAgainThoughTheServerThrottles(t *testing.T) {
	onEmbedded(t, func(s *scene, srv *zkserver.Server) {
		mine := s.session()
		names := must.Get(mine.Names(s.path + "-names"))(t)
		hold := s.hold(s.joinWith(mine, recipes.Predecessor))
		for _, g := range []recipes.Grant{hold, must.Get(names.Register(s.ctx, "name", nil))(t)} {
			var closed atomic.Bool
			var throttled atomic.Int32
			srv.SetFault(func(r zkserver.Request) zkserver.Fault {
				watches := r.Path == g.Znode() && (r.Op == zkserver.OpGetData || r.Op == zkserver.OpGetChildren2)
				return zkserver.Fault{
					CloseAfter: r.SessionID == mine.ID() && !closed.Swap(true),
					Throttle:   r.SessionID == mine.ID() && watches && throttled.Add(1) <= 3,
				}
			})
			_, _ = names.Lookup(s.ctx, "another") // whose answer is the last on this connection
			// The fourth look is answered.
			for throttled.Load() <= 3 {
				select {
				case <-g.Done():
					t.Fatalf("lost: %v", g.Err())
				case <-s.ctx.Done():
					t.Fatal("not watched again")
				default:
				}
			}
			if err := s.raw.Delete(g.Znode(), -1); err != nil {
				t.Fatal(err)
			}
			select {
			case <-g.Done():
			case <-s.ctx.Done():
				t.Fatal("not told")
			}
			if err := g.Err(); !errors.Is(err, recipes.ErrRemoved) {
				t.Error(err)
			}
		}
	})
}

// The guard goes when the place has gone. A release whose context ends by then does not wait
// for that.
func TestAReleaseDoesNotWaitForAGuardLongerThanItsContext(t *testing.T) {
	onVirtualTime(t, func(ctx context.Context, t *testing.T, srv *zkserver.Server, s recipes.Client) {
		hold := must.Get(must.Get(s.Lock("/l", recipes.LockConfig{}))(t).Acquire(ctx))(t)
		if err := hold.Write(ctx); err != nil {
			t.Fatal(err)
		}
		impatient, giveUp := context.WithCancel(ctx)
		goOn := make(chan struct{})
		srv.SetFault(func(r zkserver.Request) (f zkserver.Fault) {
			if strings.Contains(r.Path, "-guard-") {
				giveUp()
				f.Hold = goOn
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
			t.Error("it waits")
		}
		close(goOn)
		synctest.Wait()
		if left := layout(srv, "/l"); strings.Contains(strings.Join(left, " "), "-guard-") {
			t.Errorf("left %q", left)
		}
	})
}

// A grant has one guard, however often the look at its place is refused after the guard
// was made. The guard goes with the grant.
func TestGuardsDoNotPileUp(t *testing.T) {
	srv, ctx := embedded(t), bounded(t)
	s := open(t, srv)
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
			t.Errorf("a write whose look is throttled: %v", err)
		}
	}
	if n := guards(); n != 1 {
		t.Errorf("%d guards after five refused writes", n)
	}
	srv.SetFault(nil)
	for _, path := range []string{"/y", "/z"} {
		if err := hold.Write(ctx, recipes.Create(path, nil)); err != nil {
			t.Error(err)
		}
	}
	if n := guards(); n != 1 {
		t.Errorf("%d guards after the writes", n)
	}
	if err := hold.Release(ctx); err != nil {
		t.Fatal(err)
	}
	if n := guards(); n != 0 {
		t.Errorf("%d guards are left", n)
	}
}
