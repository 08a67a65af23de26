package zookeeper_test

import (
	"context"

	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// interleavedPermits are those in which the contenders of a semaphore agree on the number
// of permits.
func interleavedPermits() (all []interleaving) {
	permits := func(r zkserver.Request) bool { return r.Op == zkserver.OpMulti && r.Path == "/l" }
	agree := func(name string, dialect recipes.Dialect, meanwhile func(*interleaved) error, want error) {
		all = append(all, interleaving{"permits, " + string(dialect) + ", and " + name, permits, func(s *interleaved) (func(context.Context) error, func() error) {
			if err := s.change(recipes.Create("/l", nil)); err != nil {
				s.Fatal(err)
			}
			m := must[recipes.Semaphore](s.T)(s.one.Semaphore("/l", recipes.SemaphoreConfig{Permits: 2, Dialect: dialect}))
			return func(ctx context.Context) error { _, err := m.TryAcquire(ctx); return err }, func() error { return meanwhile(s) }
		}, want})
	}
	says := func(data string) func(*interleaved) error {
		return func(s *interleaved) error { return s.write("/l", data) }
	}
	agree("another writes the same", recipes.ZooKeeper, says("permits=2"), nil)
	agree("another writes a different number, and does not join", recipes.ZooKeeper, says("permits=3"), nil)
	agree("another writes the same", recipes.Kazoo, says("2"), nil)
	agree("another writes a different number", recipes.Kazoo, says("3"), recipes.ErrMismatch)
	agree("the path is deleted", recipes.Kazoo, func(s *interleaved) error { return s.remove("/l") }, nil)
	return all
}
