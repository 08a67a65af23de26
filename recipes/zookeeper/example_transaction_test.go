package zookeeper_test

import (
	"context"
	"fmt"
	"sync"

	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// Two sites agree on a transfer. The second cannot do it, so neither does.
func Example_transaction() {
	server, err := zkserver.Listen(zkserver.Config{}) // or a real ensemble
	if err != nil {
		panic(err)
	}
	defer server.Close()
	ctx := context.Background()
	open := func() (recipes.Session, recipes.Transaction) {
		s, err := zookeeper.Open(ctx, recipes.SessionConfig{Servers: []string{server.Addr()}})
		if err != nil {
			panic(err)
		}
		tx, err := s.Transaction("/app/Tx", recipes.TransactionConfig{Variant: recipes.OwnNodes})
		if err != nil {
			panic(err)
		}
		return s, tx
	}

	coordinator, tx := open()
	defer coordinator.Close(ctx)
	if err := tx.Begin(ctx, []byte("move 5 from a to b"), "a", "b"); err != nil {
		panic(err)
	}
	var sites sync.WaitGroup
	outcomes := make([]string, 2)
	for i, vote := range []recipes.Vote{recipes.VoteCommit, recipes.VoteAbort} {
		sites.Go(func() {
			s, tx := open()
			defer s.Close(ctx)
			site, err := tx.Join(ctx, string("ab"[i]))
			if err != nil {
				panic(err)
			}
			// Here the site prepares what site.Payload says.
			if err := site.Vote(ctx, vote); err != nil {
				panic(err)
			}
			d, err := site.Wait(ctx)
			if err != nil {
				panic(err)
			}
			// Here it carries the decision out.
			outcomes[i] = fmt.Sprintf("%s: commit %v, %s", site.Name(), d.Commit, d.Reason)
			if err := site.Done(ctx); err != nil {
				panic(err)
			}
		})
	}
	if _, err := tx.Coordinate(ctx); err != nil {
		panic(err)
	}
	sites.Wait()
	fmt.Println(outcomes[0])
	fmt.Println(outcomes[1])
	// Output:
	// a: commit false, site b voted so
	// b: commit false, site b voted so
}
