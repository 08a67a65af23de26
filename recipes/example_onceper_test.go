package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// Two machines want to send the same report. It is sent once a day.
func ExampleOncePer() {
	ctx := context.Background()
	for _, machine := range []string{"first", "second"} {
		session := open(ctx)
		defer session.Close(ctx)
		lock, err := session.Lock("/report", recipes.LockConfig{})
		if err != nil {
			log.Fatal(err)
		}
		record, err := session.Configuration(lock.Path())
		if err != nil {
			log.Fatal(err)
		}
		hold, err := lock.Acquire(ctx)
		if err != nil {
			log.Fatal(err)
		}
		turn, err := recipes.OncePer(ctx, hold, record, 24*time.Hour)
		var early *recipes.NotDueError
		switch {
		case errors.As(err, &early):
			fmt.Println(machine, "has nothing to do")
		case err != nil:
			log.Fatal(err)
		default:
			fmt.Println(machine, "sends the report")
			fmt.Println("counted:", turn.Count(ctx)) // after the work: a failure does not count
		}
		fmt.Println("released:", hold.Release(ctx))
	}
	// Output:
	// first sends the report
	// counted: <nil>
	// released: <nil>
	// second has nothing to do
	// released: <nil>
}
