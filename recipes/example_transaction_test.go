package recipes_test

import (
	"context"
	"fmt"
	"log"
	"sync"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// Two sites agree on a transfer. The second cannot do it, so neither does.
func ExampleTransaction() {
	ctx := context.Background()
	transfer := func(session recipes.Client) recipes.Transaction {
		tx, err := session.Transaction("/app/Tx", recipes.TransactionConfig{Variant: recipes.OwnNodes})
		if err != nil {
			log.Fatal(err)
		}
		return tx
	}

	coordinator := open(ctx)
	defer coordinator.Close(ctx)
	tx := transfer(coordinator)
	if err := tx.Begin(ctx, []byte("move 5 from a to b"), "a", "b"); err != nil {
		log.Fatal(err)
	}
	var sites sync.WaitGroup
	outcomes := make([]string, 2)
	for i, vote := range []recipes.Vote{recipes.VoteCommit, recipes.VoteAbort} {
		sites.Go(func() { // each in its own process
			session := open(ctx)
			defer session.Close(ctx)
			site, err := transfer(session).Join(ctx, string("ab"[i]))
			if err != nil {
				log.Fatal(err)
			}
			// Here the site prepares what site.Payload says.
			if err := site.Vote(ctx, vote); err != nil {
				log.Fatal(err)
			}
			d, err := site.Wait(ctx)
			if err != nil {
				log.Fatal(err)
			}
			// Here it carries the decision out.
			outcomes[i] = fmt.Sprintf("%s: commit %v, %s", site.Name(), d.Commit, d.Reason)
			if err := site.Done(ctx); err != nil {
				log.Fatal(err)
			}
		})
	}
	if _, err := tx.Coordinate(ctx); err != nil {
		log.Fatal(err)
	}
	sites.Wait()
	fmt.Println(outcomes[0])
	fmt.Println(outcomes[1])
	// Output:
	// a: commit false, site b voted so
	// b: commit false, site b voted so
}
