package zookeeper_test

import (
	"errors"
	"testing"

	"github.com/go-zookeeper/zk"
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
