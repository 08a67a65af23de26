package zookeeper_test

import (
	"context"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/zkrecipes/zkrecipes/internal/ensemble/ensembletest"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// The server does not show which nodes are containers, so the test waits for
// what containers are for.
func TestParentsAreRemovedByTheServerWhenEmpty(t *testing.T) {
	check := func(t *testing.T, addr string, reap func()) {
		ctx := bounded(t)
		s := must[recipes.Session](t)(zookeeper.Open(ctx, recipes.Config{Servers: []string{addr}, Chroot: "/containers/chroot"}))
		defer s.Close(ctx)
		l := must[recipes.Lock](t)(s.Lock("/a/lock", recipes.LockConfig{}))
		hold := must[recipes.Hold](t)(l.Acquire(ctx))
		raw, _, err := zk.Connect([]string{addr}, 5*time.Second, zk.WithLogInfo(false))
		if err != nil {
			t.Fatal(err)
		}
		defer raw.Close()
		if err := hold.Release(ctx); err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{"/containers/chroot/a/lock", "/containers/chroot/a", "/containers/chroot", "/containers"} {
			waitGone(ctx, t, raw, path, reap)
		}
		// And the lock works again.
		hold = must[recipes.Hold](t)(l.Acquire(ctx))
		if err := hold.Release(ctx); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("embedded", func(t *testing.T) {
		srv := embedded(t)
		check(t, srv.Addr(), srv.RunContainerCheck)
	})
	t.Run("real", func(t *testing.T) { check(t, ensembletest.Shared(t).Addrs()[0], func() {}) })
}

func waitGone(ctx context.Context, t *testing.T, raw *zk.Conn, path string, reap func()) {
	t.Helper()
	for {
		exists, _, changed, err := raw.ExistsW(path)
		if err != nil {
			t.Fatal(err)
		}
		if !exists {
			return
		}
		reap()
		select {
		case <-changed:
		case <-ctx.Done():
			t.Fatalf("%s stays", path)
		}
	}
}
