package recipes_test

import (
	"context"
	"fmt"
	"log"
	"sync"
	"sync/atomic"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// Three workers begin and end each phase of a computation together.
func ExampleDoubleBarrier() {
	ctx := context.Background()
	const workers, phases = 3, 2

	var done [phases]atomic.Int32
	var all sync.WaitGroup
	for range workers { // each in its own process
		session := open(ctx)
		barrier, err := session.DoubleBarrier("/app/phase", recipes.DoubleBarrierConfig{Size: workers})
		if err != nil {
			log.Fatal(err)
		}
		all.Go(func() {
			defer session.Close(ctx)
			for phase := range phases {
				passage, err := barrier.Enter(ctx, nil)
				if err != nil {
					log.Fatal(err)
				}
				done[phase].Add(1) // the computation
				if err := passage.Leave(ctx); err != nil {
					log.Fatal(err)
				}
				if n := done[phase].Load(); n != workers {
					log.Fatal("a worker has left before all had finished")
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
