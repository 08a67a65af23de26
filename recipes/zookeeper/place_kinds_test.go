package zookeeper_test

import (
	"context"
	gopath "path"
	"strings"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// A contender has a name of marker and number alone only where its successor goes by it.
func TestWhoStandsByNumberAlone(t *testing.T) {
	lock := func(cfg recipes.LockConfig) func(*testing.T, context.Context, recipes.Session) recipes.Grant {
		return func(t *testing.T, ctx context.Context, s recipes.Session) recipes.Grant {
			return must[recipes.Hold](t)(must[recipes.Lock](t)(s.Lock("/l", cfg)).Acquire(ctx))
		}
	}
	semaphore := func(permits int) func(*testing.T, context.Context, recipes.Session) recipes.Grant {
		return func(t *testing.T, ctx context.Context, s recipes.Session) recipes.Grant {
			cfg := recipes.SemaphoreConfig{Permits: permits, Strategy: recipes.Handoff}
			return must[recipes.Hold](t)(must[recipes.Semaphore](t)(s.Semaphore("/l", cfg)).Acquire(ctx))
		}
	}
	for name, test := range map[string]struct {
		acquire func(*testing.T, context.Context, recipes.Session) recipes.Grant
		prefix  string
	}{
		"a lock":                       {lock(recipes.LockConfig{}), "lock-"},
		"a lock by handoff":            {lock(recipes.LockConfig{Strategy: recipes.Handoff}), "lock-"},
		"a lock by predecessor":        {lock(recipes.LockConfig{Strategy: recipes.Predecessor}), "_c_"},
		"a lock by herd":               {lock(recipes.LockConfig{Strategy: recipes.Herd}), "_c_"},
		"a lock of Curator's":          {lock(recipes.LockConfig{Strategy: recipes.Handoff, Dialect: recipes.Curator}), "_c_"},
		"a lock of kazoo's":            {lock(recipes.LockConfig{Strategy: recipes.Handoff, Dialect: recipes.Kazoo}), "_c_"},
		"a semaphore of one permit":    {semaphore(1), "lease-"},
		"a semaphore of three permits": {semaphore(3), "_c_"},
		"an election": {func(t *testing.T, ctx context.Context, s recipes.Session) recipes.Grant {
			return must[recipes.Leadership](t)(must[recipes.Election](t)(s.Election("/l", recipes.ElectionConfig{Strategy: recipes.Handoff})).Campaign(ctx, nil))
		}, "n_"},
		"a shared lock": {func(t *testing.T, ctx context.Context, s recipes.Session) recipes.Grant {
			return must[recipes.SharedHold](t)(must[recipes.SharedLock](t)(s.SharedLock("/l", recipes.SharedLockConfig{Strategy: recipes.Handoff})).AcquireWrite(ctx))
		}, "_c_"},
	} {
		onVirtualTime(t, func(ctx context.Context, t *testing.T, _ *zkserver.Server, s recipes.Session) {
			if znode := gopath.Base(test.acquire(t, ctx, s).Znode()); !strings.HasPrefix(znode, test.prefix) {
				t.Errorf("%s: %s; want %s", name, znode, test.prefix)
			}
		})
	}
}
