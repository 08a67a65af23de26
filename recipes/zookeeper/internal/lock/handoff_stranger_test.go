package lock_test

import (
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
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
