package zookeeper_test

import (
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// before35 starts a server that answers as ZooKeeper 3.4 does.
func before35(t *testing.T) *zkserver.Server {
	t.Helper()
	srv := must[*zkserver.Server](t)(zkserver.Listen(zkserver.Config{MaxSessionTimeout: time.Minute, Before35: true}))
	t.Cleanup(func() { srv.Close() })
	return srv
}

// PITFALLS 64: ZooKeeper 3.4 answers that it does not know create2, and closes the
// connection.
func TestAServerWithoutCreate2(t *testing.T) {
	srv := before35(t)
	ctx, s := bounded(t), open(t, srv)
	for _, path := range []string{"/one", "/one", "/other"} {
		hold := must[recipes.Hold](t)(must[recipes.Lock](t)(s.Lock(path, recipes.LockConfig{})).Acquire(ctx))
		if err := hold.Release(ctx); err != nil {
			t.Error(err)
		}
	}
	if stats := must[recipes.Stats](t)(s.Stats(ctx)); stats.ByKind["create2"] != 1 || stats.Reconnects != 1 {
		t.Errorf("asked for %d places, on %d connections; one and one more have to do", stats.ByKind["create2"], stats.Reconnects)
	}
}

// ZooKeeper 3.4 knows no containers either, and refuses their flag. Once it
// has refused one it is asked for plain znodes, which nothing removes when they are empty.
func TestAServerWithoutContainers(t *testing.T) {
	srv := before35(t)
	ctx, s := bounded(t), open(t, srv)
	sent := func() (multi, create int64) {
		stats := must[recipes.Stats](t)(s.Stats(ctx))
		return stats.ByKind["multi"], stats.ByKind["create"]
	}
	for _, step := range []struct {
		path          string
		multi, create int64 // requests so far
	}{
		{"/a/b/barrier", 2, 3}, // /a/b, for want of /a, and /a; then all three as plain znodes
		{"/c/d/barrier", 2, 7}, // /c/d, for want of /c, and then all three
	} {
		if err := must[recipes.Barrier](t)(s.Barrier(step.path)).Set(ctx, nil); err != nil {
			t.Fatal(err)
		}
		if multi, create := sent(); multi != step.multi || create != step.create {
			t.Errorf("%s: %d containers and %d plain znodes were asked for so far; want %d and %d", step.path, multi, create, step.multi, step.create)
		}
		if err := must[recipes.Barrier](t)(s.Barrier(step.path)).Remove(ctx); err != nil {
			t.Fatal(err)
		}
	}
	for range 3 { // it goes up one node at a time
		srv.RunContainerCheck()
	}
	for _, path := range []string{"/a", "/a/b", "/c", "/c/d"} {
		if !exists(srv, path) {
			t.Errorf("%s was a container", path)
		}
	}
}
