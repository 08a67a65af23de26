package zookeeper_test

import (
	"context"
	"fmt"
	"sync"

	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// Jobs are counted, and a latch opens when all of them are done.
func Example_counterAndLatch() {
	server, err := zkserver.Listen(zkserver.Config{}) // or a real ensemble
	if err != nil {
		panic(err)
	}
	defer server.Close()
	ctx := context.Background()
	session, err := zookeeper.Open(ctx, recipes.SessionConfig{Servers: []string{server.Addr()}})
	if err != nil {
		panic(err)
	}
	defer session.Close(ctx)

	counter, err := session.Counter("/app/records", recipes.CounterConfig{})
	if err != nil {
		panic(err)
	}
	latch, err := session.Latch("/app/done", recipes.LatchConfig{Count: 2})
	if err != nil {
		panic(err)
	}
	var jobs sync.WaitGroup
	defer jobs.Wait() // before the session is closed
	for _, records := range []int64{300, 42} {
		jobs.Go(func() { // a job, elsewhere
			if _, err := counter.Add(ctx, records); err != nil {
				panic(err)
			}
			if _, err := latch.CountDown(ctx); err != nil {
				panic(err)
			}
		})
	}
	fmt.Println("all are done:", latch.Wait(ctx))
	fmt.Println(counter.Get(ctx))
	// Output:
	// all are done: <nil>
	// 342 <nil>
}
