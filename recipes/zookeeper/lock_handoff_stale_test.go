package zookeeper_test

import (
	"errors"
	"math"
	gopath "path"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// By handoff a znode's name is marker and number alone, and comes back when the
// line's path is removed and made again. These are about who must not take
// another's for its own.

// remove deletes contenders' znodes, and the line's path with them.
func (s *scene) remove(znodes ...string) {
	s.Helper()
	var ops []any
	for _, znode := range append(znodes, s.path) {
		ops = append(ops, &zk.DeleteRequest{Path: znode, Version: -1})
	}
	if _, err := s.raw.Multi(ops...); err != nil {
		s.Fatal(err)
	}
}

func (s *scene) exists(znode string) bool {
	s.Helper()
	there, _, err := s.raw.Exists(znode)
	if err != nil {
		s.Fatal(err)
	}
	return there
}

// Nobody has told the holder that its znode is gone, for it has not asked.
func TestAStaleReleaseHitsNobodyOfItsName(t *testing.T) {
	t.Run("a hold of another session", func(t *testing.T) {
		onBoth(t, func(s *scene) {
			first := s.join()
			stale := s.hold(first)
			s.remove(first.place.Znode)
			next := s.join()
			hold := s.hold(next)
			if hold.Znode() != stale.Znode() {
				s.Fatalf("%s and %s: the case was not met", stale.Znode(), hold.Znode())
			}
			if err := stale.Release(s.ctx); !errors.Is(err, recipes.ErrRemoved) {
				s.Errorf("release: %v", err)
			}
			if !s.exists(hold.Znode()) {
				s.Error("the stale release has deleted the znode of who holds")
			}
		})
	})
	// Whose znode the session may write to: who stands behind it would take that
	// for a release by who holds.
	t.Run("a waiter of the same session", func(t *testing.T) {
		onBoth(t, func(s *scene) {
			session := s.session()
			ahead := s.hold(s.join())
			old := s.joinWith(session, recipes.Handoff)
			s.release(ahead)
			stale := s.hold(old)
			s.remove(old.place.Znode)
			hold := s.hold(s.join())
			waiter := s.joinWith(session, recipes.Handoff)
			behind := s.join()
			if waiter.place.Znode != stale.Znode() {
				s.Fatalf("%s and %s: the case was not met", stale.Znode(), waiter.place.Znode)
			}
			if err := stale.Release(s.ctx); !errors.Is(err, recipes.ErrRemoved) {
				s.Errorf("release: %v", err)
			}
			if !s.exists(waiter.place.Znode) {
				s.Fatal("the stale release has handed over for who holds")
			}
			s.release(hold)
			s.release(s.hold(waiter))
			s.release(s.hold(behind))
		})
	})
}

// A waiter whose znode was removed has nothing to leave.
func TestAStaleWaiterLeavesItsNameAlone(t *testing.T) {
	onEmbedded(t, func(s *scene, srv *zkserver.Server) {
		first, second := s.join(), s.join()
		s.hold(first)
		looks, goOn := make(chan struct{}), make(chan struct{})
		looked := false
		srv.SetFault(func(r zkserver.Request) zkserver.Fault {
			switch {
			case r.SessionID != second.session.ID():
			case r.Op == zkserver.OpGetChildren2 && !looked:
				looked = true
				close(looks)
				return zkserver.Fault{Hold: goOn}
			case r.Op == zkserver.OpDelete:
				s.Errorf("it deletes %s", r.Path)
			}
			return zkserver.Fault{}
		})
		s.remove(first.place.Znode, second.place.Znode)
		<-looks
		hold, waiter := s.hold(s.join()), s.join()
		if waiter.place.Znode != second.place.Znode {
			s.Fatalf("%s and %s: the case was not met", waiter.place.Znode, second.place.Znode)
		}
		close(goOn)
		if err := s.failure(second); !errors.Is(err, recipes.ErrRemoved) {
			s.Errorf("told %v", err)
		}
		last := s.joinWith(second.session, recipes.Handoff)
		s.release(hold)
		s.release(s.hold(waiter))
		s.release(s.hold(last))
	})
}

// Where ZooKeeper gives 2147483647 to all, a name comes back in the same line, and
// the one with the number before is not the nearest ahead.
func TestNobodyStandsByANumberThatIsGivenTwice(t *testing.T) {
	onEmbedded(t, func(s *scene, srv *zkserver.Server) {
		s.release(s.hold(s.join())) // makes the path
		if err := srv.SetSequence(s.path, math.MaxInt32-1); err != nil {
			t.Fatal(err)
		}
		hold := s.hold(s.join())
		srv.SetFault(func(r zkserver.Request) zkserver.Fault {
			if creates(r.Op) && gopath.Dir(r.Path) == s.path {
				if err := srv.SetSequence(s.path, math.MaxInt32); err != nil {
					t.Error(err)
				}
			}
			return zkserver.Fault{}
		})
		gone, third := s.join(), s.join()
		gone.cancel()
		s.failure(gone)
		for s.exists(gone.place.Znode) {
		}
		for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h", "i"} { // for a line that is not known to be short
			if _, err := s.raw.Create(s.path+"/"+name, nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll)); err != nil {
				t.Fatal(err)
			}
		}
		fourth := s.join()
		s.release(hold)
		s.release(s.hold(third))
		s.release(s.hold(fourth))
		for _, c := range []*contender{gone, third, fourth} {
			if !strings.Contains(c.place.Znode, "_c_") {
				t.Errorf("the place is %s", c.place.Znode)
			}
		}
		if c := s.counters(fourth); c.Handoffs != 0 {
			t.Error("the fourth was handed what was the third's")
		}
	})
}
