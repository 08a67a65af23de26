package interop_test

import (
	"errors"
	"sync/atomic"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/zkrecipes/zkrecipes/internal/testing/ensembletest"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// TestOneWaitQueueWithGoZookeeper: contenders of all strategies and of go-zookeeper's Lock
// exclude each other at one path, and each gets its turns.
func TestOneWaitQueueWithGoZookeeper(t *testing.T) {
	addrs := ensembletest.Shared(t).Addrs()
	path := "/go-zookeeper-" + uuid.NewString()
	raw := rawSessions(t, addrs, 3)
	strategies := recipes.Strategies()
	var locks []lock
	for i, s := range ownSessions(t, addrs, 3*len(strategies), zookeeper.Open) {
		locks = append(locks, newOwnLock(t, s, path, strategies[i%len(strategies)]))
	}
	for _, c := range raw {
		locks = append(locks, goZookeeper{zk.NewLock(c, path, zk.WorldACL(zk.PermAll))})
	}
	var holders atomic.Int32
	var all errgroup.Group
	for _, l := range locks {
		all.Go(func() error {
			for range 8 {
				if err := l.acquire(t.Context()); err != nil {
					return err
				}
				if holders.Add(1) != 1 {
					t.Error("two hold")
				}
				_, _, err := raw[0].Exists(path) // hold it for a round trip
				holders.Add(-1)
				if err := errors.Join(err, l.release(t.Context())); err != nil {
					return err
				}
			}
			return nil
		})
	}
	must.Do(t, all.Wait())
}
