package zookeeper_test

import (
	"context"
	"fmt"

	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// Two workers join a group; a third process watches who is there. A worker that
// dies leaves the group when its session ends.
func Example_group() {
	server, err := zkserver.Listen(zkserver.Config{}) // or a real ensemble
	if err != nil {
		panic(err)
	}
	defer server.Close()
	ctx := context.Background()
	open := func() (recipes.Session, recipes.Group) {
		s, err := zookeeper.Open(ctx, recipes.SessionConfig{Servers: []string{server.Addr()}})
		if err != nil {
			panic(err)
		}
		g, err := s.Group("/app/workers", recipes.GroupConfig{})
		if err != nil {
			panic(err)
		}
		return s, g
	}

	watcher, workers := open()
	defer watcher.Close(ctx)
	snapshots, err := workers.Watch(ctx)
	if err != nil {
		panic(err)
	}
	show := func() {
		for i, m := range <-snapshots {
			fmt.Printf("worker %d at %s\n", i+1, m.Data)
		}
		fmt.Println("--")
	}
	show()
	one, g := open()
	if _, err := g.Join(ctx, []byte("10.0.0.1:80")); err != nil {
		panic(err)
	}
	show()
	two, g := open()
	defer two.Close(ctx)
	member, err := g.Join(ctx, []byte("10.0.0.2:80"))
	if err != nil {
		panic(err)
	}
	show()
	one.Close(ctx) // or it dies
	show()
	if err := member.Update(ctx, []byte("10.0.0.2:81")); err != nil {
		panic(err)
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
