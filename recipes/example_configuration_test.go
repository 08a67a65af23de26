package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// A value is changed by compare-and-set, and its users follow it.
func ExampleConfiguration() {
	ctx := context.Background()
	session := open(ctx)
	defer session.Close(ctx)

	config, err := session.Configuration("/app/config")
	if err != nil {
		log.Fatal(err)
	}
	values, err := config.Watch(ctx, "db/host")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("not set yet:", (<-values).None())
	first, err := config.Set(ctx, "db/host", []byte("one"), recipes.NoRevision)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("now %s\n", (<-values).Value)
	if _, err := config.Set(ctx, "db/host", []byte("two"), first); err != nil {
		log.Fatal(err)
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
	// not set yet: true
	// now one
	// now two
	// outdated: true
	// "" = ""
	// "db" = ""
	// "db/host" = "two"
	// <nil>
}
