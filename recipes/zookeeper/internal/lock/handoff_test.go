package lock_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/testing/ensembletest"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// With handoff, the release is the grant. While its session's proof is young, the next contender
// holds without sending a request.
func TestAReleaseHandsOver(t *testing.T) {
	zktest.OnBoth(t, func(s *zktest.Scene) {
		first := s.Hold(s.Join())
		second := s.Join()
		before := s.Counters(second)
		s.Release(first)
		hold := s.Hold(second)
		cost := s.Counters(second)
		if cost.Reads != before.Reads || cost.ByKind["sync"] != before.ByKind["sync"] || cost.Writes != before.Writes || cost.Handoffs != 1 {
			t.Errorf("the grant cost %+v after %+v", cost, before)
		}
		if hold.Token() <= first.Token() {
			t.Errorf("token %d after %d", hold.Token(), first.Token())
		}
		must.Report(t, hold.Write(s.Ctx))
		s.Release(hold)
	})
}

// A waiter that gives up or dies never held the lock. The contender behind it continues to wait
// for the one ahead.
func TestOnlyAHolderHandsOver(t *testing.T) {
	leave := map[string]func(*zktest.Scene, *zktest.Contender){
		"cancelled":      func(s *zktest.Scene, c *zktest.Contender) { c.Cancel(); s.Failure(c) },
		"session closed": func(s *zktest.Scene, c *zktest.Contender) { c.Session.Close(s.Ctx); s.Failure(c) },
		"deleted by another client": func(s *zktest.Scene, c *zktest.Contender) {
			must.Do(s, s.Raw.Delete(c.Place.Znode, -1))
			if err := s.Failure(c); !errors.Is(err, recipes.ErrRemoved) {
				s.Errorf("failed with %v", err)
			}
		},
	}
	for name, leaves := range leave {
		t.Run(name, func(t *testing.T) {
			zktest.OnBoth(t, func(s *zktest.Scene) {
				first := s.Hold(s.Join())
				second, third := s.Join(), s.Join()
				leaves(s, second)
				s.Fallbacks(third, 1)
				select {
				case <-third.Held:
					t.Fatal("granted while the first holds")
				default:
				}
				s.Release(first)
				s.Release(s.Hold(third))
			})
		})
	}
}

// A holder that dies hands nothing off. The next contender lists the wait queue, and finds that
// it is first.
func TestAHolderThatDies(t *testing.T) {
	zktest.OnBoth(t, func(s *zktest.Scene) {
		first := s.Join()
		s.Hold(first)
		second := s.Join()
		must.Do(t, first.Session.Close(s.Ctx))
		s.Release(s.Hold(second))
		if c := s.Counters(second); c.Handoffs != 0 || c.Fallbacks == 0 {
			t.Errorf("granted by %+v; want fallbacks only", c)
		}
	})
}

// After a lost reply, a contender finds its place among the znodes that are younger than the
// creation, however long the wait queue is.
func TestALostPlaceIsFoundAmongTheNewest(t *testing.T) {
	srv := zktest.Embedded(t)
	s := &zktest.Scene{T: t, Ctx: zktest.Bounded(t), Addr: srv.Addr(), Path: "/newest"}
	first := s.Join()
	many := s.Session()
	for range 40 {
		s.JoinWith(many, recipes.Handoff)
	}
	victim := s.Session()
	if err := victim.(interface {
		Sync(context.Context, string) error
	}).Sync(s.Ctx, s.Path); err != nil { // so the session has seen a recent transaction
		t.Fatal(err)
	}
	lost, reads := false, 0
	srv.SetFault(func(r zkserver.Request) zkserver.Fault {
		switch {
		case r.SessionID != victim.ID():
		case r.Op == zkserver.OpGetData:
			reads++
		case r.Op == zkserver.OpCreate2 && !lost:
			lost = true
			return zkserver.Fault{DropReply: true}
		}
		return zkserver.Fault{}
	})
	c := s.JoinWith(victim, recipes.Handoff)
	if !lost || strings.Contains(c.Place.Znode, "_c_") {
		t.Fatalf("the place is %s: the case was not met", c.Place.Znode)
	}
	if reads != 2 { // its own znode, and its predecessor's
		t.Errorf("%d reads", reads)
	}
	s.Release(s.Hold(first))
}

// Events come from the server to which a session is connected, and it may lag. No contender
// holds before the one ahead has released.
func TestContendersAtDifferentServers(t *testing.T) {
	t.Parallel() // waits for servers
	const each, turns = 3, 40
	addrs := ensembletest.Start(t, ensembletest.Quick(3)).Addrs()
	s := &zktest.Scene{T: t, Ctx: zktest.Bounded(t), Path: "/lagging"}
	var holders atomic.Int32
	var last atomic.Int64
	var handoffs atomic.Int64
	var all sync.WaitGroup
	for i := range each * len(addrs) {
		s.Addr = addrs[i%len(addrs)]
		session := s.Session()
		l := must.Get(session.Lock(s.Path, recipes.LockConfig{Strategy: recipes.Handoff}))(t)
		all.Go(func() {
			for range turns {
				hold, err := l.Acquire(s.Ctx)
				if err != nil {
					t.Error(err)
					return
				}
				if n := holders.Add(1); n != 1 {
					t.Errorf("%d contenders hold the lock", n)
				}
				if before := last.Swap(int64(hold.Token())); before >= int64(hold.Token()) {
					t.Errorf("token %d after %d", hold.Token(), before)
				}
				holders.Add(-1)
				if err := hold.Release(s.Ctx); err != nil {
					t.Error(err)
					return
				}
			}
			counters, err := session.Stats(s.Ctx)
			if err != nil {
				t.Error(err)
			}
			handoffs.Add(counters.Handoffs)
		})
	}
	all.Wait()
	if all := int64(each * len(addrs) * turns); handoffs.Load() < all/2 {
		t.Errorf("%d of %d turns were handoffs", handoffs.Load(), all)
	}
}
