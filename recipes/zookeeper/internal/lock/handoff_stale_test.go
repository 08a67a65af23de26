package lock_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	gopath "path"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// By handoff a znode's name consists of marker and number only. The name is used again when
// the path is deleted and created again. The stale holder has not checked its grant since
// then.
func TestAStaleReleaseHitsNoOtherOfItsName(t *testing.T) {
	t.Run("a hold of another session", func(t *testing.T) {
		zktest.OnBoth(t, func(s *zktest.Scene) {
			first := s.Join()
			stale := s.Hold(first)
			s.Remove(first.Place.Znode)
			next := s.Join()
			hold := s.Hold(next)
			if hold.Znode() != stale.Znode() {
				s.Fatalf("%s and %s: the case was not met", stale.Znode(), hold.Znode())
			}
			// Until the server has reported the deletion, a release may still hit the other hold
			// (package line, "Names that are used again").
			s.Lost(stale)
			if err := stale.Release(s.Ctx); !errors.Is(err, recipes.ErrRemoved) {
				s.Errorf("release: %v", err)
			}
			if !s.Exists(hold.Znode()) {
				s.Error("the stale release has deleted the znode of who holds")
			}
		})
	})
	// The session may write to this znode. Its successor would mistake that write for
	// the holder's release.
	t.Run("a waiter of the same session", func(t *testing.T) {
		zktest.OnBoth(t, func(s *zktest.Scene) {
			session := s.Session()
			ahead := s.Hold(s.Join())
			old := s.JoinWith(session, recipes.Handoff)
			s.Release(ahead)
			stale := s.Hold(old)
			s.Remove(old.Place.Znode)
			hold := s.Hold(s.Join())
			waiter := s.JoinWith(session, recipes.Handoff)
			behind := s.Join()
			if waiter.Place.Znode != stale.Znode() {
				s.Fatalf("%s and %s: the case was not met", stale.Znode(), waiter.Place.Znode)
			}
			if err := stale.Release(s.Ctx); !errors.Is(err, recipes.ErrRemoved) {
				s.Errorf("release: %v", err)
			}
			if !s.Exists(waiter.Place.Znode) {
				s.Fatal("the stale release has deleted the waiter's place")
			}
			s.Release(hold)
			s.Release(s.Hold(waiter))
			s.Release(s.Hold(behind))
		})
	})
}

// A waiter whose znode was removed has nothing to leave.
func TestAStaleWaiterLeavesItsNameAlone(t *testing.T) {
	zktest.OnEmbedded(t, func(s *zktest.Scene, srv *zkserver.Server) {
		first, second := s.Join(), s.Join()
		s.Hold(first)
		looks, proceed := make(chan struct{}), make(chan struct{})
		looked := false
		srv.SetFault(func(r zkserver.Request) zkserver.Fault {
			switch {
			case r.SessionID != second.Session.ID():
			case r.Op == zkserver.OpGetChildren2 && !looked:
				looked = true
				close(looks)
				return zkserver.Fault{Hold: proceed}
			case r.Op == zkserver.OpDelete:
				s.Errorf("it deletes %s", r.Path)
			}
			return zkserver.Fault{}
		})
		s.Remove(first.Place.Znode, second.Place.Znode)
		<-looks
		hold, waiter := s.Hold(s.Join()), s.Join()
		if waiter.Place.Znode != second.Place.Znode {
			s.Fatalf("%s and %s: the case was not met", waiter.Place.Znode, second.Place.Znode)
		}
		close(proceed)
		if err := s.Failure(second); !errors.Is(err, recipes.ErrRemoved) {
			s.Errorf("acquire: %v", err)
		}
		last := s.JoinWith(second.Session, recipes.Handoff)
		s.Release(hold)
		s.Release(s.Hold(waiter))
		s.Release(s.Hold(last))
	})
}

// If ZooKeeper gives 2147483647 to every further contender, a name is used again in the same
// wait queue, and the contender with the preceding number is not the nearest ahead.
func TestNoContenderIsNamedByANumberThatIsGivenTwice(t *testing.T) {
	zktest.OnEmbedded(t, func(s *zktest.Scene, srv *zkserver.Server) {
		s.Release(s.Hold(s.Join())) // makes the path
		must.Do(t, srv.SetSequence(s.Path, math.MaxInt32-1))
		hold := s.Hold(s.Join())
		srv.SetFault(func(r zkserver.Request) zkserver.Fault {
			if zktest.Creates(r.Op) && gopath.Dir(r.Path) == s.Path {
				must.Report(t, srv.SetSequence(s.Path, math.MaxInt32))
			}
			return zkserver.Fault{}
		})
		gone, third := s.Join(), s.Join()
		gone.Cancel()
		s.Failure(gone)
		for s.Exists(gone.Place.Znode) {
		}
		for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h", "i"} { // so that the wait queue is not known to be short
			must.Get(s.Raw.Create(s.Path+"/"+name, nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll)))(t)
		}
		fourth := s.Join()
		s.Release(hold)
		s.Release(s.Hold(third))
		s.Release(s.Hold(fourth))
		for _, c := range []*zktest.Contender{gone, third, fourth} {
			if !strings.Contains(c.Place.Znode, "_c_") {
				t.Errorf("the place is %s", c.Place.Znode)
			}
		}
		if c := s.Counters(fourth); c.Handoffs != 0 {
			t.Error("the fourth was granted by handoff, although its place is protected")
		}
	})
}

// The reply to a release is lost, and the name is used again before the session reads the
// znode. The czxid shows that the znode belongs to another contender.
func TestAHandoffInDoubtLeavesTheNextOfItsNameAlone(t *testing.T) {
	srv, ctx := zktest.Embedded(t), zktest.Bounded(t)
	former, next, operator := zktest.Open(t, srv), zktest.Open(t, srv), zktest.Open(t, srv)
	acquire := func(s recipes.Client) recipes.Hold {
		l := must.Get(s.Lock("/names", recipes.LockConfig{Strategy: recipes.Handoff}))(t)
		return must.Get(l.Acquire(ctx))(t)
	}
	stale := acquire(former)
	var hold recipes.Hold
	lost, multis := false, 0
	srv.SetFault(func(r zkserver.Request) zkserver.Fault {
		switch {
		case r.SessionID != former.ID():
		case r.Op == zkserver.OpMulti && strings.HasPrefix(r.Path, "/names/"):
			if multis++; !lost {
				lost = true
				return zkserver.Fault{DropReply: true}
			}
		case lost && hold == nil && r.Op == zkserver.OpExists:
			must.Report(t, must.Get(operator.Barrier("/names"))(t).Remove(ctx))
			hold = acquire(next)
		}
		return zkserver.Fault{}
	})
	if err := stale.Release(context.WithoutCancel(ctx)); err != nil {
		t.Errorf("a release that has happened: %v", err)
	}
	if hold == nil || hold.Znode() != stale.Znode() {
		t.Fatal("the case was not met")
	}
	if multis != 1 {
		t.Errorf("the release was sent %d times", multis)
	}
	if err := hold.Write(ctx); err != nil {
		t.Errorf("the next hold: %v", err)
	}
}

// A waiter's place is deleted, and then the holder releases. Both events reach the waiter
// together with the answer that its watches are set. The deletion came first, so the release
// was for another contender.
func TestAWaiterThatWasDeletedBeforeTheReleaseIsNotNext(t *testing.T) {
	srv := zktest.Embedded(t)
	holder, waiter, operator := zktest.Open(t, srv), zktest.Open(t, srv), zktest.Open(t, srv)
	for i := range 200 { // which of two events a select takes is random
		ctx := zktest.Bounded(t)
		path := fmt.Sprintf("/burst-%d", i)
		lock := func(s recipes.Client) recipes.Lock {
			return must.Get(s.Lock(path, recipes.LockConfig{Strategy: recipes.Handoff}))(t)
		}
		hold := must.Get(lock(holder).Acquire(ctx))(t)
		armed, burst := make(chan struct{}), make(chan struct{})
		srv.SetFault(func(r zkserver.Request) zkserver.Fault {
			if r.SessionID == waiter.ID() && r.Op == zkserver.OpGetData && r.Path == hold.Znode() {
				close(armed)
				return zkserver.Fault{HoldReply: burst}
			}
			return zkserver.Fault{}
		})
		ended := zktest.Go(ctx, lock(waiter).Acquire)
		<-armed
		srv.SetFault(nil)
		contenders := must.Get(lock(operator).Contenders(ctx))(t)
		if len(contenders) != 2 {
			t.Fatalf("%d contenders", len(contenders))
		}
		must.Do(t, must.Get(operator.Barrier(contenders[1].Znode))(t).Remove(ctx))
		must.Do(t, hold.Release(ctx))
		close(burst)
		if err := (<-ended).Err; !errors.Is(err, recipes.ErrRemoved) {
			t.Fatalf("a waiter whose place was deleted before the release: %v", err)
		}
	}
}
