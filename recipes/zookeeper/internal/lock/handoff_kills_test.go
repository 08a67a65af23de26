package lock_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/zkrecipes/zkrecipes/internal/testing/ensembletest"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/testall"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// killed returns how often TestAServerStartsAfterEachKill kills its server, and how many znodes
// the server has: few in a normal run, 200 and 100,000 with `.ci/suite acl`.
func killed(t *testing.T) (kills, znodes int) {
	kills, znodes = 5, 2000
	if value := os.Getenv("ZKRECIPES_ACL_KILLS"); value != "" {
		if _, err := fmt.Sscanf(value, "%d/%d", &kills, &znodes); err != nil {
			t.Fatalf("ZKRECIPES_ACL_KILLS is kills/znodes, such as 200/100000, not %q", value)
		}
	}
	return kills, znodes
}

// A server can start from a snapshot that it has written while contenders came and went
// (ZOOKEEPER-4846). It writes a snapshot most of the time: the more znodes, the longer.
func TestAServerStartsAfterEachKill(t *testing.T) {
	if os.Getenv("ZKRECIPES_ACL_KILLS") == "" {
		testall.Require(t) // TestALineHasOneACL is faster
	}
	t.Parallel() // waits for servers
	kills, znodes := killed(t)
	cfg := ensembletest.Quick(1)
	cfg.HeapMiB = 512
	cfg.SystemProperties["zookeeper.snapCount"] = "500"
	e := ensembletest.Start(t, cfg)
	fill(t, e.Addrs()[0], znodes)

	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	defer all.Wait()
	defer stop()
	var turns atomic.Int64
	progress := make(chan struct{}, 1)
	for i := range 10 {
		path := "/queue"
		if i >= 7 {
			path = fmt.Sprintf("/alone-%d", i) // a path without contenders between turns
		}
		all.Go(func() {
			for ctx.Err() == nil {
				contend(ctx, e.Addrs(), path, func() {
					turns.Add(1)
					select {
					case progress <- struct{}{}:
					default:
					}
				})
			}
		})
	}
	for n := range kills {
		for until := turns.Load() + 100 + rand.Int64N(500); turns.Load() < until; {
			select {
			case <-progress:
			case <-ctx.Done():
				t.Fatal(ctx.Err())
			}
		}
		must.Do(t, e.Server(0).Kill())
		must.Do(t, e.Server(0).Restart(ctx))
		if err := e.WaitServing(ctx); err != nil || strings.Contains(e.Server(0).Log(), "Failed to fetch acls") {
			t.Fatalf("start %d, after %d turns: %v", n+1, turns.Load(), err)
		}
	}
	t.Logf("%d starts of a server of %d znodes after %d turns", kills, znodes, turns.Load())
}

// contend acquires and releases a lock until its session is lost or ctx ends.
func contend(ctx context.Context, servers []string, path string, turn func()) {
	s, err := zookeeper.Open(ctx, recipes.SessionConfig{Servers: servers, SessionTimeout: 30 * time.Second})
	if err != nil {
		return
	}
	defer s.Close(ctx)
	l, err := s.Lock(path, recipes.LockConfig{Strategy: recipes.Handoff})
	for err == nil {
		var h recipes.Hold
		if h, err = l.Acquire(ctx); err == nil {
			turn()
			_ = h.Release(ctx)
		}
	}
}

// fill creates n znodes.
func fill(t *testing.T, addr string, n int) {
	t.Helper()
	raw := zktest.Raw(t, addr)
	must.Get(raw.Create("/fill", nil, 0, zk.WorldACL(zk.PermAll)))(t)
	const batch = 500
	for made := 0; made < n; made += batch {
		var ops []any
		for i := range min(batch, n-made) {
			ops = append(ops, &zk.CreateRequest{Path: fmt.Sprintf("/fill/n-%07d", made+i), Data: make([]byte, 50), Acl: zk.WorldACL(zk.PermAll)})
		}
		must.Get(raw.Multi(ops...))(t)
	}
}
