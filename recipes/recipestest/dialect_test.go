package recipestest_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/recipestest"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// TestAnImplementationWithoutDialects: an implementation passes if it returns ErrUnsupported
// before it creates anything.
func TestAnImplementationWithoutDialects(t *testing.T) {
	addr := embedded(t).Addr()
	recipestest.RunGroup(t, "dialect", recipestest.Env{
		Open: func(ctx context.Context, cfg recipes.SessionConfig) (recipes.Client, error) {
			s, err := zookeeper.Open(ctx, cfg)
			return monoglot{s}, err
		},
		Servers: func(testing.TB) []string { return []string{addr} },
	})
}

// monoglot is a session that supports only the default dialect.
type monoglot struct{ recipes.Client }

// only opens a recipe in the default dialect.
func only[R, C any](d recipes.Dialect, open func(string, C) (R, error), path string, cfg C) (r R, err error) {
	d, err = d.Normalize()
	if err == nil && d != recipes.ZooKeeper {
		err = fmt.Errorf("%w: dialect %s", recipes.ErrUnsupported, d)
	}
	if err != nil {
		return r, err
	}
	return open(path, cfg)
}

func (m monoglot) Lock(path string, cfg recipes.LockConfig) (recipes.Lock, error) {
	return only(cfg.Dialect, m.Client.Lock, path, cfg)
}

func (m monoglot) SharedLock(path string, cfg recipes.SharedLockConfig) (recipes.SharedLock, error) {
	return only(cfg.Dialect, m.Client.SharedLock, path, cfg)
}

func (m monoglot) Election(path string, cfg recipes.ElectionConfig) (recipes.Election, error) {
	return only(cfg.Dialect, m.Client.Election, path, cfg)
}

func (m monoglot) Semaphore(path string, cfg recipes.SemaphoreConfig) (recipes.Semaphore, error) {
	return only(cfg.Dialect, m.Client.Semaphore, path, cfg)
}

func (m monoglot) Counter(path string, cfg recipes.CounterConfig) (recipes.Counter, error) {
	return only(cfg.Dialect, m.Client.Counter, path, cfg)
}

func (m monoglot) Group(path string, cfg recipes.GroupConfig) (recipes.Group, error) {
	return only(cfg.Dialect, m.Client.Group, path, cfg)
}

func (m monoglot) DoubleBarrier(path string, cfg recipes.DoubleBarrierConfig) (recipes.DoubleBarrier, error) {
	return only(cfg.Dialect, m.Client.DoubleBarrier, path, cfg)
}

func (m monoglot) Queue(path string, cfg recipes.QueueConfig) (recipes.Queue, error) {
	return only(cfg.Dialect, m.Client.Queue, path, cfg)
}
