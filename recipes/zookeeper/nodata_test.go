package zookeeper_test

import (
	"strconv"
	"testing"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// TestNoZnodeHasNullData: Curator's LeaderLatch and LeaderSelector read all children of
// their path, and throw when one has null data instead of empty data.
func TestNoZnodeHasNullData(t *testing.T) {
	srv, ctx := embedded(t), bounded(t)
	s := open(t, srv)
	write := func(h recipes.Grant, err error) {
		t.Helper()
		if err == nil { // with the guard of a znode whose name may come back
			err = h.Write(ctx, recipes.Create(h.Znode()[:len("/app/x")]+"/written", nil))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for i, strategy := range recipes.Strategies() {
		path := "/app/" + strconv.Itoa(i)
		write(must[recipes.Lock](t)(s.Lock(path, recipes.LockConfig{Strategy: strategy})).Acquire(ctx))
	}
	write(must[recipes.Election](t)(s.Election("/app/e", recipes.ElectionConfig{})).Campaign(ctx, nil))
	write(must[recipes.SharedLock](t)(s.SharedLock("/app/s", recipes.SharedLockConfig{})).AcquireWrite(ctx))
	write(must[recipes.PriorityLock](t)(s.PriorityLock("/app/w", recipes.PriorityLockConfig{})).AcquireWrite(ctx))
	write(must[recipes.Group](t)(s.Group("/app/g", recipes.GroupConfig{Name: "n"})).Join(ctx, nil))
	must[recipes.Passage](t)(must[recipes.DoubleBarrier](t)(s.DoubleBarrier("/app/d", recipes.DoubleBarrierConfig{Size: 1})).Enter(ctx, nil))
	must[recipes.ElementID](t)(must[recipes.Queue](t)(s.Queue("/app/q", recipes.QueueConfig{Capacity: 1})).Put(ctx, nil))
	must[int64](t)(must[recipes.Counter](t)(s.Counter("/app/c", recipes.CounterConfig{})).Add(ctx, 1))
	for _, err := range []error{
		must[recipes.Barrier](t)(s.Barrier("/app/b")).Set(ctx, nil),
		must[recipes.Names](t)(s.Names("/app/n")).RegisterPersistent(ctx, "n", nil),
		must[recipes.Transaction](t)(s.Transaction("/app/t", recipes.TransactionConfig{})).Begin(ctx, nil, "1"),
	} {
		if err != nil {
			t.Error(err)
		}
	}
	checked := 0
	for _, n := range srv.Tree() {
		if len(n.Path) > len("/app") {
			checked++
		}
		if n.Data == nil && len(n.Path) >= len("/app") && n.Path[:len("/app")] == "/app" {
			t.Errorf("%s has null data", n.Path)
		}
	}
	if checked < 30 {
		t.Errorf("only %d znodes", checked)
	}
}
