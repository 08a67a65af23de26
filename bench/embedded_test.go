package bench_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/bench"
	"github.com/zkrecipes/zkrecipes/bench/load"
	"github.com/zkrecipes/zkrecipes/bench/record"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// embedded returns a server that ends with the test.
func embedded(t *testing.T) *zkserver.Server {
	t.Helper()
	server, err := zkserver.Listen(zkserver.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	return server
}

// drained drains a line of n on an embedded server.
func drained(t *testing.T, server *zkserver.Server, open recipes.Opener, recipe load.Recipe, strategy recipes.Strategy, n int) record.Record {
	t.Helper()
	e := bench.Experiment{
		Recipes: []load.Recipe{recipe}, Workloads: []load.Workload{load.Drain},
		Strategies: []recipes.Strategy{strategy}, Contenders: []int{n},
		Transports: []bench.Transport{{Name: "direct", Open: open}},
		Count:      1, Root: "/zkbench/test",
		Session: recipes.SessionConfig{Servers: []string{server.Addr()}},
	}
	r, err := e.Run(t.Context(), e.Trials()[0])
	if err != nil {
		t.Fatal(err)
	}
	if r.Operations != int64(n-1) || r.Counters.Writes != int64(n-1) {
		t.Errorf("%d handoffs with %d writes; want %d of each", r.Operations, r.Counters.Writes, n-1)
	}
	return r
}

func TestPredecessorDrainCostsOneEventAndTwoReads(t *testing.T) {
	for _, recipe := range load.Recipes() {
		const n = 40
		r := drained(t, embedded(t), zookeeper.Open, recipe, recipes.Predecessor, n)
		if r.Counters.WatchEvents != n-1 {
			t.Errorf("%s: %d watch events for %d handoffs; want one each", recipe, r.Counters.WatchEvents, n-1)
		}
		if r.Counters.Reads > 2*(n-1) {
			t.Errorf("%s: %d reads for %d handoffs; want at most two each: %v", recipe, r.Counters.Reads, n-1, r.Counters.ByKind)
		}
	}
}

// Whoever waits by handoff is told by its predecessor: it lists nothing, and looks at
// two znodes at most, so what a handoff costs does not depend on how long the line is.
func TestHandoffDrainCostsTheSameInEveryLine(t *testing.T) {
	for _, recipe := range load.Recipes() {
		bytes := map[int]float64{}
		for _, n := range []int{10, 80} {
			r := drained(t, embedded(t), zookeeper.Open, recipe, recipes.Handoff, n)
			c := r.Counters
			if c.Reads > 2*r.Operations || c.WatchEvents > 2*r.Operations || c.Handoffs != r.Operations || c.Fallbacks != 0 {
				t.Errorf("%s, %d contenders: %d reads, %d watch events, %d handoffs of %d, %d fallbacks; want at most two reads and two events each, and no fallback",
					recipe, n, c.Reads, c.WatchEvents, c.Handoffs, r.Operations, c.Fallbacks)
			}
			bytes[n] = float64(c.ResponseBytes) / float64(r.Operations)
		}
		if bytes[80] > 1.1*bytes[10] {
			t.Errorf("%s: bytes per handoff grow with the line: %v", recipe, bytes)
		}
	}
}

// A departure wakes all who wait, and each of them reads the line again. They
// are so slow about it that the next departure may come before they all watch
// again; then fewer are woken, so only the bounds are certain.
func TestHerdDrainCostsMoreTheLongerTheLine(t *testing.T) {
	for _, recipe := range load.Recipes() {
		perHandoff := map[int]float64{}
		for _, n := range []int{2, 10, 40} {
			r := drained(t, embedded(t), zookeeper.Open, recipe, recipes.Herd, n)
			if most := int64(n * (n - 1) / 2); r.Counters.WatchEvents > most || r.Counters.WatchEvents < int64(n)-1 {
				t.Errorf("%s: %d watch events in a line of %d; want %d to %d", recipe, r.Counters.WatchEvents, n, n-1, most)
			}
			perHandoff[n] = float64(r.Counters.Reads) / float64(r.Operations)
		}
		if perHandoff[10] < 2*perHandoff[2] || perHandoff[40] < 2*perHandoff[10] {
			t.Errorf("%s: reads per handoff do not grow with the line: %v", recipe, perHandoff)
		}
	}
}

// With holders that leave only when all others watch again, every departure
// wakes exactly those who are left: N-1, N-2, ... 1.
func TestHerdDrainWakesEverybodyAtEveryStep(t *testing.T) {
	const n = 12
	server := embedded(t)
	var left atomic.Int64
	left.Store(n)
	open := func(ctx context.Context, cfg recipes.SessionConfig) (recipes.Client, error) {
		s, err := zookeeper.Open(ctx, cfg)
		return considerate{s, server, &left}, err
	}
	r := drained(t, server, open, load.Lock, recipes.Herd, n)
	if want := int64(n * (n - 1) / 2); r.Counters.WatchEvents != want {
		t.Errorf("%d watch events in a line of %d; want %d", r.Counters.WatchEvents, n, want)
	}
}

// considerate is a session whose locks are released only when all others who
// are left in line watch.
type considerate struct {
	recipes.Client
	server *zkserver.Server
	left   *atomic.Int64
}

func (c considerate) Lock(path string, cfg recipes.LockConfig) (recipes.Lock, error) {
	lock, err := c.Client.Lock(path, cfg)
	return considerateLock{lock, c}, err
}

type considerateLock struct {
	recipes.Lock
	considerate
}

func (c considerateLock) Acquire(ctx context.Context) (recipes.Hold, error) {
	hold, err := c.Lock.Acquire(ctx)
	return considerateHold{hold, c.considerate}, err
}

type considerateHold struct {
	recipes.Hold
	considerate
}

func (c considerateHold) Release(ctx context.Context) error {
	others := c.left.Add(-1)
	for tick := time.Tick(time.Millisecond); int64(c.server.Watches()) < others; {
		select {
		case <-tick:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return c.Hold.Release(ctx)
}
