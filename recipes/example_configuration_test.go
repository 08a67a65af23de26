package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// Only the holder of a lock changes a key.
func ExampleConfiguration_Key() {
	ctx := context.Background()
	session := open(ctx)
	defer session.Close(ctx)

	config, err := session.Configuration("/app/owner")
	if err != nil {
		log.Fatal(err)
	}
	if _, err := config.Set(ctx, "leader", nil, recipes.AnyRevision); err != nil {
		log.Fatal(err)
	}
	lock, err := session.Lock("/app/lock", recipes.LockConfig{})
	if err != nil {
		log.Fatal(err)
	}
	hold, err := lock.Acquire(ctx)
	if err != nil {
		log.Fatal(err)
	}
	set, err := config.Key(recipes.Set("leader", []byte("host-a"), recipes.AnyVersion))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(hold.Write(ctx, set))
	if err := hold.Release(ctx); err != nil {
		log.Fatal(err)
	}
	fmt.Println("refused:", errors.Is(hold.Write(ctx, set), recipes.ErrNotHeld))
	leader, err := config.Get(ctx, "leader")
	fmt.Printf("%s %v\n", leader.Value, err)
	// Output:
	// <nil>
	// refused: true
	// host-a <nil>
}

// Clients change a value by compare-and-set, and others follow it.
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
