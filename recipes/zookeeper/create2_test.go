package zookeeper_test

import (
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// PITFALLS 64: ZooKeeper 3.4 answers that it does not know create2, and closes the
// connection.
func TestAServerWithoutCreate2(t *testing.T) {
	srv := must[*zkserver.Server](t)(zkserver.Listen(zkserver.Config{MaxSessionTimeout: time.Minute, NoCreate2: true}))
	t.Cleanup(func() { srv.Close() })
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
