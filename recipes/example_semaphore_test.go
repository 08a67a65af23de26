package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// At most two downloads run at a time, in all processes together.
func ExampleSemaphore() {
	ctx := context.Background()
	session := open(ctx)
	defer session.Close(ctx)

	downloads, err := session.Semaphore("/app/downloads", recipes.SemaphoreConfig{Permits: 2})
	if err != nil {
		log.Fatal(err)
	}
	first, err := downloads.Acquire(ctx)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := downloads.Acquire(ctx); err != nil {
		log.Fatal(err)
	}
	_, err = downloads.TryAcquire(ctx)
	fmt.Println("a third is refused:", errors.Is(err, recipes.ErrContended))
	if err := first.Release(ctx); err != nil {
		log.Fatal(err)
	}
	_, err = downloads.TryAcquire(ctx)
	fmt.Println("and granted when one has been released:", err)
	// Output:
	// a third is refused: true
	// and granted when one has been released: <nil>
}

// Each of several workers has its own number, and works on the shard with that number.
func ExampleSlots() {
	ctx := context.Background()
	session := open(ctx)
	defer session.Close(ctx)

	workers, err := session.Slots("/app/workers", recipes.SemaphoreConfig{Permits: 4})
	if err != nil {
		log.Fatal(err)
	}
	first, err := workers.Acquire(ctx)
	if err != nil {
		log.Fatal(err)
	}
	second, err := workers.Acquire(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("shards", first.Slot(), "and", second.Slot())
	if err := first.Release(ctx); err != nil {
		log.Fatal(err)
	}
	third, err := workers.Acquire(ctx)
	fmt.Println("shard", third.Slot(), "again:", err)
	// Output:
	// shards 0 and 1
	// shard 0 again: <nil>
}
