package zookeeper_test

import (
	"errors"
	"fmt"
	gopath "path"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// Nobody else can write to a contender's znode, which would be taken for a
// release. Its deletion by hand still works.
func TestAnotherHandCannotWriteToAContender(t *testing.T) {
	onBoth(t, func(s *scene) {
		first := s.join()
		hold := s.hold(first)
		second := s.join()
		for _, c := range []*contender{first, second} {
			if _, err := s.raw.Set(c.place.Znode, []byte("unlock"), -1); !errors.Is(err, zk.ErrNoAuth) {
				t.Fatalf("set: %v", err)
			}
			if _, err := s.raw.SetACL(c.place.Znode, zk.WorldACL(zk.PermAll), -1); !errors.Is(err, zk.ErrNoAuth) {
				t.Fatalf("setACL: %v", err)
			}
		}
		other := must.Get(s.session().Lock(s.path, recipes.LockConfig{}))(t)
		for _, c := range must.Get(other.Contenders(s.ctx))(t) {
			if len(c.Data) != 0 {
				t.Errorf("data %q", c.Data)
			}
		}
		if err := s.raw.Delete(first.place.Znode, -1); err != nil {
			t.Fatal(err)
		}
		s.release(s.hold(second))
		if err := hold.Release(s.ctx); !errors.Is(err, recipes.ErrNotHeld) {
			t.Errorf("release: %v", err)
		}
	})
}

// A contender with a name like ours that somebody else has made may be written
// to without being released.
func TestAStrangersZnodeIsNotTrusted(t *testing.T) {
	onBoth(t, func(s *scene) {
		s.release(s.hold(s.join())) // makes the path
		stranger, err := s.raw.Create(s.path+"/lock-", nil, zk.FlagEphemeral|zk.FlagSequence, zk.WorldACL(zk.PermAll))
		if err != nil {
			t.Fatal(err)
		}
		waiter := s.join()
		for s.counters(waiter).Fallbacks < 3 {
			if _, err := s.raw.Set(stranger, []byte("news"), -1); err != nil {
				t.Fatal(err)
			}
			select {
			case <-waiter.held:
				t.Fatal("granted")
			default:
			}
		}
		if err := s.raw.Delete(stranger, -1); err != nil {
			t.Fatal(err)
		}
		s.release(s.hold(waiter))
		if c := s.counters(waiter); c.Handoffs != 0 {
			t.Errorf("%+v", c)
		}
	})
}

// The waiter's own znode is deleted, and then its predecessor releases: it is the
// turn of who stands behind, and not of both.
func TestAWaiterWithoutItsZnodeIsNotHandedTheLock(t *testing.T) {
	onBoth(t, func(s *scene) {
		first := s.hold(s.join())
		second, third := s.join(), s.join()
		if err := s.raw.Delete(second.place.Znode, -1); err != nil {
			t.Fatal(err)
		}
		s.release(first)
		if err := s.failure(second); !errors.Is(err, recipes.ErrRemoved) {
			t.Errorf("told %v", err)
		}
		s.release(s.hold(third))
	})
}

// The line's path is removed by hand and made again: numbers start from 0 and
// names come back. Neither a stale hold's write nor a stale waiter is fooled.
func TestNamesThatComeBack(t *testing.T) {
	onBoth(t, func(s *scene) {
		// Two generations of three, with the same names.
		generation := func() (cs [3]*contender, hold recipes.Hold) {
			for i := range cs {
				cs[i] = s.join()
				if want := fmt.Sprintf("lock-%010d", i); gopath.Base(cs[i].place.Znode) != want {
					t.Fatalf("the name is %s, want %s", cs[i].place.Znode, want)
				}
			}
			return cs, s.hold(cs[0])
		}
		old, stale := generation()
		var ops []any
		for _, c := range old {
			ops = append(ops, &zk.DeleteRequest{Path: c.place.Znode, Version: -1})
		}
		ops = append(ops, &zk.DeleteRequest{Path: s.path, Version: -1})
		if _, err := s.raw.Multi(ops...); err != nil {
			t.Fatal(err)
		}
		for _, c := range old[1:] {
			if err := s.failure(c); !errors.Is(err, recipes.ErrRemoved) {
				t.Errorf("a waiter of the old line: %v", err)
			}
		}
		fresh, hold := generation()
		if stale.Znode() != hold.Znode() {
			t.Fatalf("%s and %s: the case was not met", stale.Znode(), hold.Znode())
		}
		if err := stale.Write(s.ctx, recipes.Create(s.path+"-written", nil)); !errors.Is(err, recipes.ErrNotHeld) {
			t.Errorf("a stale hold's write: %v", err)
		}
		if err := stale.Release(s.ctx); !errors.Is(err, recipes.ErrNotHeld) {
			t.Errorf("a stale hold's release: %v", err)
		}
		if err := hold.Write(s.ctx, recipes.Create(s.path+"-written", nil)); err != nil {
			t.Errorf("the new hold's write: %v", err)
		}
		s.release(hold)
		for _, c := range fresh[1:] {
			s.release(s.hold(c))
		}
	})
}

// A hold whose guarded writes work goes on working when somebody deletes what
// guards them.
func TestAGuardThatIsDeletedIsMadeAgain(t *testing.T) {
	onBoth(t, func(s *scene) {
		hold := s.hold(s.join())
		for range 2 {
			if err := hold.Write(s.ctx); err != nil {
				t.Fatal(err)
			}
			dir := s.path + "/guards-lock-9999999999"
			guards, _, err := s.raw.Children(dir)
			if err != nil || len(guards) != 1 {
				t.Fatalf("guards %v: %v", guards, err)
			}
			if err := s.raw.Delete(dir+"/"+guards[0], -1); err != nil {
				t.Fatal(err)
			}
		}
		if err := hold.Write(s.ctx); err != nil {
			t.Fatal(err)
		}
		s.release(hold)
	})
}
