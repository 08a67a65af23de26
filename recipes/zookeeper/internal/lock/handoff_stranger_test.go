package lock_test

import (
	"errors"
	"fmt"
	gopath "path"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// A write to a contender's znode would be taken for a release, so no other client may write to
// it.
func TestAnotherClientCannotWriteToAContender(t *testing.T) {
	zktest.OnBoth(t, func(s *zktest.Scene) {
		s.Hold(s.Join())
		znode := s.Join().Place.Znode
		_, set := s.Raw.Set(znode, []byte("unlock"), -1)
		_, setACL := s.Raw.SetACL(znode, zk.WorldACL(zk.PermAll), -1)
		for _, err := range []error{set, setACL} {
			s.Is(err, zk.ErrNoAuth)
		}
	})
}

// Another client has created a contender with a name like ours. A write to its znode is not a
// release.
func TestAnotherClientsZnodeIsNotTrusted(t *testing.T) {
	zktest.OnBoth(t, func(s *zktest.Scene) {
		stranger := s.Contender("lock-")
		waiter := s.Join()
		for s.Counters(waiter).Fallbacks < 3 {
			must.Get(s.Raw.Set(stranger, []byte("news"), -1))(t)
			select {
			case <-waiter.Held:
				t.Fatal("granted")
			default:
			}
		}
		must.Do(t, s.Raw.Delete(stranger, -1))
		s.Release(s.Hold(waiter))
		if c := s.Counters(waiter); c.Handoffs != 0 {
			t.Errorf("granted by %+v; want no handoff", c)
		}
	})
}

// The guarded writes of a hold still work after another client has deleted the guard.
func TestADeletedGuardIsCreatedAgain(t *testing.T) {
	zktest.OnBoth(t, func(s *zktest.Scene) {
		hold := s.Hold(s.Join())
		for range 2 {
			must.Do(t, hold.Write(s.Ctx))
			dir := s.Path + "/guards-lock-9999999999"
			guards, _, err := s.Raw.Children(dir)
			if err != nil || len(guards) != 1 {
				t.Fatalf("guards %v: %v", guards, err)
			}
			must.Do(t, s.Raw.Delete(dir+"/"+guards[0], -1))
		}
		must.Do(t, hold.Write(s.Ctx))
		s.Release(hold)
	})
}

// An operator deletes the path of the lock, and it is created again. Sequence numbers start from
// 0, so names repeat. A stale hold cannot write, and no stale waiter is granted.
func TestNamesThatRepeat(t *testing.T) {
	zktest.OnBoth(t, func(s *zktest.Scene) {
		// There are two sets of three contenders, with the same names.
		three := func() (cs [3]*zktest.Contender, hold recipes.Hold) {
			for i := range cs {
				cs[i] = s.Join()
				if want := fmt.Sprintf("lock-%010d", i); gopath.Base(cs[i].Place.Znode) != want {
					t.Fatalf("the name is %s, want %s", cs[i].Place.Znode, want)
				}
			}
			return cs, s.Hold(cs[0])
		}
		old, stale := three()
		var ops []any
		for _, c := range old {
			ops = append(ops, &zk.DeleteRequest{Path: c.Place.Znode, Version: -1})
		}
		ops = append(ops, &zk.DeleteRequest{Path: s.Path, Version: -1})
		must.Get(s.Raw.Multi(ops...))(t)
		for _, c := range old[1:] {
			if err := s.Failure(c); !errors.Is(err, recipes.ErrRemoved) {
				t.Errorf("a waiter of the old line: %v", err)
			}
		}
		fresh, hold := three()
		if stale.Znode() != hold.Znode() {
			t.Fatalf("%s and %s: the case was not met", stale.Znode(), hold.Znode())
		}
		if err := stale.Write(s.Ctx, recipes.Create(s.Path+"-written", nil)); !errors.Is(err, recipes.ErrNotHeld) {
			t.Errorf("a stale hold's write: %v", err)
		}
		if err := stale.Release(s.Ctx); !errors.Is(err, recipes.ErrNotHeld) {
			t.Errorf("a stale hold's release: %v", err)
		}
		if err := hold.Write(s.Ctx, recipes.Create(s.Path+"-written", nil)); err != nil {
			t.Errorf("the new hold's write: %v", err)
		}
		s.Release(hold)
		for _, c := range fresh[1:] {
			s.Release(s.Hold(c))
		}
	})
}
