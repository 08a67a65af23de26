package zookeeper_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// A value is changed by compare-and-set, and followed by those who use it.
func Example_configuration() {
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

	config, err := session.Configuration("/app/config", recipes.ConfigurationConfig{})
	if err != nil {
		panic(err)
	}
	values, err := config.Watch(ctx, "db/host")
	if err != nil {
		panic(err)
	}
	fmt.Println("there is none:", (<-values).None())
	first, err := config.Set(ctx, "db/host", []byte("one"), recipes.NoRevision)
	if err != nil {
		panic(err)
	}
	fmt.Printf("now %s\n", (<-values).Value)
	if _, err := config.Set(ctx, "db/host", []byte("two"), first); err != nil {
		panic(err)
	}
	fmt.Printf("now %s\n", (<-values).Value)
	_, err = config.Set(ctx, "db/host", []byte("three"), first)
	fmt.Println("outdated:", errors.Is(err, recipes.ErrBadVersion))

	entries, err := config.Snapshot(ctx)
	for _, e := range entries {
		fmt.Printf("%q = %q\n", e.Key, e.Value)
	}
	fmt.Println(err)
	// Output:
	// there is none: true
	// now one
	// now two
	// outdated: true
	// "" = ""
	// "db" = ""
	// "db/host" = "two"
	// <nil>
}
