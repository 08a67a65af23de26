package recipes_test

import (
	"context"
	"fmt"
	"log"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// Two workers join a group, and a third process watches its members. A worker
// that dies leaves the group when its session ends.
func ExampleGroup() {
	ctx := context.Background()
	workers := func(session recipes.Client) recipes.Group {
		group, err := session.Group("/app/workers", recipes.GroupConfig{})
		if err != nil {
			log.Fatal(err)
		}
		return group
	}

	watcher := open(ctx)
	defer watcher.Close(ctx)
	snapshots, err := workers(watcher).Watch(ctx)
	if err != nil {
		log.Fatal(err)
	}
	show := func() {
		for i, m := range <-snapshots {
			fmt.Printf("worker %d at %s\n", i+1, m.Data)
		}
		fmt.Println("--")
	}
	show()
	one, two := open(ctx), open(ctx)
	defer two.Close(ctx)
	if _, err := workers(one).Join(ctx, []byte("10.0.0.1:80")); err != nil {
		log.Fatal(err)
	}
	show()
	member, err := workers(two).Join(ctx, []byte("10.0.0.2:80"))
	if err != nil {
		log.Fatal(err)
	}
	show()
	one.Close(ctx) // or it dies
	show()
	if err := member.Update(ctx, []byte("10.0.0.2:81")); err != nil {
		log.Fatal(err)
	}
	show()
	// Output:
	// --
	// worker 1 at 10.0.0.1:80
	// --
	// worker 1 at 10.0.0.1:80
	// worker 2 at 10.0.0.2:80
	// --
	// worker 1 at 10.0.0.2:80
	// --
	// worker 1 at 10.0.0.2:81
	// --
}
