package zookeeper_test

import (
	"context"
	"fmt"

	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// Workers wait at a barrier until the migration is over.
func Example_barrier() {
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

	barrier, err := session.Barrier("/app/migration", recipes.BarrierConfig{})
	if err != nil {
		panic(err)
	}
	if err := barrier.Set(ctx, []byte("schema 12 to 13, ask ann")); err != nil {
		panic(err)
	}
	passed := make(chan error)
	go func() { passed <- barrier.Wait(ctx) }() // a worker, elsewhere
	placed, err := barrier.IsSet(ctx)
	fmt.Println("in place:", placed, err)

	fmt.Println("removed:", barrier.Remove(ctx))
	fmt.Println("passed:", <-passed)
	// Output:
	// in place: true <nil>
	// removed: <nil>
	// passed: <nil>
}
