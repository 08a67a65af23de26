package zookeeper_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// Three workers begin and end each phase of a computation together.
func Example_doubleBarrier() {
	server, err := zkserver.Listen(zkserver.Config{}) // or a real ensemble
	if err != nil {
		panic(err)
	}
	defer server.Close()
	ctx := context.Background()
	const workers, phases = 3, 2

	var done [phases]atomic.Int32
	var all sync.WaitGroup
	for range workers { // each would be a process of its own
		session, err := zookeeper.Open(ctx, recipes.SessionConfig{Servers: []string{server.Addr()}})
		if err != nil {
			panic(err)
		}
		barrier, err := session.DoubleBarrier("/app/phase", recipes.DoubleBarrierConfig{Size: workers})
		if err != nil {
			panic(err)
		}
		all.Go(func() {
			defer session.Close(ctx)
			for phase := range phases {
				passage, err := barrier.Enter(ctx, nil)
				if err != nil {
					panic(err)
				}
				done[phase].Add(1) // the computation
				if err := passage.Leave(ctx); err != nil {
					panic(err)
				}
				if n := done[phase].Load(); n != workers {
					panic("somebody has left before all were done")
				}
			}
		})
	}
	all.Wait()
	for phase := range phases {
		fmt.Printf("phase %d: %d workers\n", phase, done[phase].Load())
	}
	// Output:
	// phase 0: 3 workers
	// phase 1: 3 workers
}
