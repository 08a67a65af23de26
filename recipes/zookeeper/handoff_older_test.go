package zookeeper_test

import (
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// older is a contender of a version that gives each session an identity of its own.
type older struct {
	s     *scene
	raw   *zk.Conn
	place string
}

func (s *scene) older() *older {
	s.Helper()
	raw, _, err := zk.Connect([]string{s.addr}, deadline, zk.WithLogInfo(false))
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(raw.Close)
	if err := raw.AddAuth("digest", []byte("zkrecipes-ABC:random")); err != nil {
		s.Fatal(err)
	}
	acl := append(zk.WorldACL(zk.PermRead|zk.PermCreate|zk.PermDelete), zk.DigestACL(zk.PermAll, "zkrecipes-ABC", "random")...)
	place, err := raw.Create(s.path+"/lock-", []byte("_p_"+strings.Repeat("0", 36)+"-"), zk.FlagEphemeral|zk.FlagSequence, acl)
	if err != nil {
		s.Fatal(err)
	}
	return &older{s, raw, place}
}

// release returns how the server took it.
func (o *older) release(place string) error {
	_, err := o.raw.Multi(&zk.SetDataRequest{Path: place, Version: 0}, &zk.DeleteRequest{Path: place, Version: 1})
	return err
}

// Both versions stand in one line, hand over to each other, and write to no place of the
// other.
func TestBothVersionsStandInOneLine(t *testing.T) {
	onBoth(t, func(s *scene) {
		first := s.hold(s.join()) // makes the path
		old := s.older()
		_, _, changed, err := old.raw.GetW(first.Znode())
		if err != nil {
			t.Fatal(err)
		}
		last := s.join()
		if err := old.release(first.Znode()); err != zk.ErrNoAuth {
			s.Errorf("the older one releases for the newer: %v", err)
		}
		s.release(first)
		if e := <-changed; e.Type != zk.EventNodeDataChanged {
			s.Errorf("the older one was told %v", e.Type)
		}
		if err := old.release(old.place); err != nil {
			s.Fatal(err)
		}
		s.release(s.hold(last))
		if c := s.counters(last); c.Handoffs != 1 || c.Fallbacks != 0 {
			s.Errorf("the newer one was handed over to: %+v", c)
		}
	})
}

// The path of a line may be written by sessions that have no contender there.
func TestTheDataOfALinesPathMayBeWritten(t *testing.T) {
	onBoth(t, func(s *scene) {
		s.release(s.hold(s.join())) // makes the path
		semaphore := must[recipes.Semaphore](s.T)(openAt(s.T, s.addr).Semaphore(s.path, recipes.SemaphoreConfig{Permits: 2}))
		if err := must[recipes.Hold](s.T)(semaphore.Acquire(s.ctx)).Release(s.ctx); err != nil { // it has written the permits
			s.Error(err)
		}
		if err := must[recipes.Hold](s.T)(must[recipes.Lock](s.T)(openAt(s.T, s.addr).Lock(s.path+"-clear", recipes.LockConfig{Strategy: recipes.Predecessor})).Acquire(s.ctx)).Write(s.ctx, recipes.Set(s.path, []byte("0"), recipes.AnyVersion)); err != nil {
			s.Error(err)
		}
		for _, write := range []func(recipes.Session) error{
			func(other recipes.Session) error {
				_, err := must[recipes.Counter](s.T)(other.Counter(s.path, recipes.CounterConfig{})).Add(s.ctx, 1)
				return err
			},
			func(other recipes.Session) error {
				hold := must[recipes.Hold](s.T)(must[recipes.Lock](s.T)(other.Lock(s.path+"-other", recipes.LockConfig{Strategy: recipes.Predecessor})).Acquire(s.ctx))
				return hold.Write(s.ctx, recipes.Set(s.path, []byte("1"), recipes.AnyVersion))
			},
		} {
			if err := write(openAt(s.T, s.addr)); err != nil {
				s.Error(err)
			}
		}
	})
}
