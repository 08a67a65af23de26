package recipes_test

import (
	"context"
	"fmt"
	"log"
)

// Workers wait at a barrier until the migration is over.
func ExampleBarrier() {
	ctx := context.Background()
	session := open(ctx)
	defer session.Close(ctx)

	barrier, err := session.Barrier("/app/migration")
	if err != nil {
		log.Fatal(err)
	}
	if err := barrier.Set(ctx, []byte("schema 12 to 13, ask ann")); err != nil {
		log.Fatal(err)
	}
	passed := make(chan error)
	go func() { passed <- barrier.Wait(ctx) }() // a worker, in another process
	set, err := barrier.IsSet(ctx)
	fmt.Println("set:", set, err)

	fmt.Println("removed:", barrier.Remove(ctx))
	fmt.Println("passed:", <-passed)
	// Output:
	// set: true <nil>
	// removed: <nil>
	// passed: <nil>
}
