package recipes_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// A worker keeps one shard of a store for each number that it owns.
func ExampleShares() {
	ctx := context.Background()
	session := open(ctx)
	defer session.Close(ctx)
	shares, err := session.Shares("/shards", 4, recipes.SharesConfig{Grace: 10 * time.Second})
	if err != nil {
		log.Fatal(err)
	}
	portion, err := shares.Join(ctx)
	if err != nil {
		log.Fatal(err)
	}
	// A worker receives until the channel is closed. What is missing in a later value is revoked.
	for _, share := range <-portion.Changes() {
		fmt.Println("owned:", share.Number(), share.Err())
		go func() {
			<-share.Revoked()
			share.Release(ctx) // finish first
		}()
	}
	fmt.Println("left:", portion.Leave(ctx))
	// Output:
	// owned: 0 <nil>
	// owned: 1 <nil>
	// owned: 2 <nil>
	// owned: 3 <nil>
	// left: <nil>
}
