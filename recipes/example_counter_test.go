package recipes_test

import (
	"context"
	"fmt"
	"log"
	"sync"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// Several jobs count their records. Each addition is counted once.
func ExampleCounter() {
	ctx := context.Background()
	session := open(ctx)
	defer session.Close(ctx)

	counter, err := session.Counter("/app/records", recipes.CounterConfig{})
	if err != nil {
		log.Fatal(err)
	}
	var jobs sync.WaitGroup
	for _, records := range []int64{300, 42} {
		jobs.Go(func() { // a job, in another process
			if _, err := counter.Add(ctx, records); err != nil {
				log.Fatal(err)
			}
		})
	}
	jobs.Wait()
	fmt.Println(counter.Get(ctx))
	// Output:
	// 342 <nil>
}

// A latch opens when all jobs have finished, and stays open.
func ExampleLatch() {
	ctx := context.Background()
	session := open(ctx)
	defer session.Close(ctx)

	finished, err := session.Latch("/app/finished", recipes.LatchConfig{Count: 2})
	if err != nil {
		log.Fatal(err)
	}
	var jobs sync.WaitGroup
	for range 2 {
		jobs.Go(func() { // a job, in another process
			if _, err := finished.CountDown(ctx); err != nil {
				log.Fatal(err)
			}
		})
	}
	fmt.Println("all have finished:", finished.Wait(ctx))
	jobs.Wait()
	// Output:
	// all have finished: <nil>
}
