package lock_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

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
	if reads != 2 { // reads of the contender's own znode, and of its predecessor's
		t.Errorf("%d reads", reads)
	}
	s.Release(s.Hold(first))
}

// After a session has had to wait at a path, its next contender does not check how long the wait
// queue is. It reads its predecessor by name.
func TestABusyLineIsNotListed(t *testing.T) {
	zktest.OnVirtualTime(t, func(ctx context.Context, t *testing.T, srv *zkserver.Server, s recipes.Client) {
		at := func(s recipes.Client) recipes.Lock {
			return must.Get(s.Lock("/busy", recipes.LockConfig{Strategy: recipes.Handoff}))(t)
		}
		granted := make(chan recipes.Hold, 2)
		wait := func(s recipes.Client) {
			go func() {
				if h, err := at(s).Acquire(ctx); err == nil {
					granted <- h
				}
			}()
			synctest.Wait()
		}
		hold := must.Get(at(zktest.OpenVirtual(t, srv)).Acquire(ctx))(t)
		wait(s)
		must.Do(t, hold.Release(ctx))
		hold = <-granted // s has had to wait
		wait(zktest.OpenVirtual(t, srv))
		must.Do(t, hold.Release(ctx))
		hold = <-granted
		before := srv.Counters()
		wait(s)
		cost := srv.Counters().Sub(before)
		if n := cost.Requests[zkserver.OpGetChildren] + cost.Requests[zkserver.OpGetChildren2] + cost.Requests[zkserver.OpExists]; n != 0 {
			t.Errorf("the contender joined with %d checks of the wait queue", n)
		}
		must.Do(t, hold.Release(ctx))
		must.Do(t, (<-granted).Release(ctx))
	})
}
