package recipes_test

import (
	"context"
	"fmt"
	"log"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// A transfer needs two accounts. Another transfer may name them in the other order.
func ExampleAcquireAll() {
	ctx := context.Background()
	session := open(ctx)
	defer session.Close(ctx)
	var locks []recipes.Lock
	for _, account := range []string{"/accounts/2", "/accounts/1"} {
		lock, err := session.Lock(account, recipes.LockConfig{})
		if err != nil {
			log.Fatal(err)
		}
		locks = append(locks, lock)
	}
	both, err := recipes.AcquireAll(ctx, locks...)
	if err != nil {
		log.Fatal(err)
	}
	// ZooKeeper writes only if both are held.
	fmt.Println("written:", both.Write(ctx,
		recipes.Set("/accounts/1", []byte("90"), recipes.AnyVersion),
		recipes.Set("/accounts/2", []byte("110"), recipes.AnyVersion)))
	fmt.Println("released:", both.Release(ctx))
	// Output:
	// written: <nil>
	// released: <nil>
}
