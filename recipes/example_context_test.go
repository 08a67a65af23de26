package recipes_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// A job that gets the context stops when the lock is lost.
func ExampleWithHold() {
	ctx := context.Background()
	session := open(ctx)
	defer session.Close(ctx)
	lock, err := session.Lock("/app/report", recipes.LockConfig{})
	if err != nil {
		log.Fatal(err)
	}
	hold, err := lock.Acquire(ctx)
	if err != nil {
		log.Fatal(err)
	}
	held, stop := recipes.WithHold(ctx, hold)
	defer stop()
	fmt.Println("enough time for a step:", time.Until(hold.ValidUntil()) > time.Second)

	if err := hold.Release(ctx); err != nil { // or the session is lost
		log.Fatal(err)
	}
	<-held.Done()
	fmt.Println(context.Cause(held))
	// Output:
	// enough time for a step: true
	// not held: released
}
