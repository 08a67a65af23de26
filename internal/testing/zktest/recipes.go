package zktest

import (
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// BarrierAt returns the barrier of a path. Its Remove deletes any znode without children.
func BarrierAt(t *testing.T, s recipes.Recipes, path string) recipes.Barrier {
	t.Helper()
	return must.Get(s.Barrier(path))(t)
}

// ConfigAt returns the configuration of a path.
func ConfigAt(t *testing.T, s recipes.Recipes, path string) recipes.Configuration {
	t.Helper()
	return must.Get(s.Configuration(path))(t)
}

// CounterAt returns the counter of a path.
func CounterAt(t *testing.T, s recipes.Recipes, path string) recipes.Counter {
	t.Helper()
	return must.Get(s.Counter(path, recipes.CounterConfig{}))(t)
}

// LatchAt returns the latch of a path.
func LatchAt(t *testing.T, s recipes.Recipes, path string, count int64) recipes.Latch {
	t.Helper()
	return must.Get(s.Latch(path, recipes.LatchConfig{Count: count}))(t)
}

// NamesAt returns the directory of names at a path.
func NamesAt(t *testing.T, s recipes.Recipes, path string) recipes.Names {
	t.Helper()
	return must.Get(s.Names(path))(t)
}

// QueueOf returns the queue of a path.
func QueueOf(t *testing.T, s recipes.Recipes, path string, cfg recipes.QueueConfig) recipes.Queue {
	t.Helper()
	return must.Get(s.Queue(path, cfg))(t)
}

// Acquire acquires the lock of /deadline.
func Acquire(t *testing.T, s recipes.Recipes) recipes.Hold {
	t.Helper()
	return must.Get(must.Get(s.Lock("/deadline", recipes.LockConfig{}))(t).Acquire(t.Context()))(t)
}
