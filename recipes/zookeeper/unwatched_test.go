package zookeeper_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

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
		names := must[recipes.Names](t)(mine.Names(s.path))
		name := must[recipes.Registration](t)(names.Register(s.ctx, "name", nil))
		member := must[recipes.Membership](t)(must[recipes.Group](t)(mine.Group(s.path, recipes.GroupConfig{})).Join(s.ctx, nil))
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
		names := must[recipes.Names](t)(mine.Names(s.path + "-names"))
		hold := s.hold(s.joinWith(mine, recipes.Predecessor))
		for _, g := range []recipes.Grant{hold, must[recipes.Registration](t)(names.Register(s.ctx, "name", nil))} {
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
