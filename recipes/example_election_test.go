package recipes_test

import (
	"context"
	"fmt"
	"log"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// Two servers campaign. The first one leads until it resigns or its session ends.
// Then the other leads.
func ExampleElection() {
	ctx := context.Background()
	first, second := open(ctx), open(ctx) // each in its own process
	defer first.Close(ctx)
	defer second.Close(ctx)

	election, err := first.Election("/app/leader", recipes.ElectionConfig{})
	if err != nil {
		log.Fatal(err)
	}
	leadership, err := election.Campaign(ctx, []byte("10.0.0.1:80"))
	if err != nil {
		log.Fatal(err)
	}
	leader, err := election.Leader(ctx)
	fmt.Printf("the leader is at %s, %v\n", leader.Data, err)

	elected := make(chan recipes.Leadership)
	go func() {
		election, err := second.Election("/app/leader", recipes.ElectionConfig{})
		if err != nil {
			log.Fatal(err)
		}
		leadership, err := election.Campaign(ctx, []byte("10.0.0.2:80")) // waits until elected
		if err != nil {
			log.Fatal(err)
		}
		elected <- leadership
	}()
	if err := leadership.Resign(ctx); err != nil {
		log.Fatal(err)
	}
	next := <-elected
	leader, err = election.Leader(ctx)
	fmt.Printf("the leader is at %s, %v\n", leader.Data, err)
	fmt.Println("its token is larger:", next.Token() > leadership.Token())
	// Output:
	// the leader is at 10.0.0.1:80, <nil>
	// the leader is at 10.0.0.2:80, <nil>
	// its token is larger: true
}

// Clients follow the leader. A new leader acknowledges when it is ready, and they
// wait for that before they use it.
func ExampleElection_observe() {
	ctx := context.Background()
	session := open(ctx)
	defer session.Close(ctx)
	election, err := session.Election("/app/primary", recipes.ElectionConfig{})
	if err != nil {
		log.Fatal(err)
	}
	changes, err := election.Observe(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("no leader:", (<-changes).None())
	leadership, err := election.Campaign(ctx, []byte("10.0.0.1:80"))
	if err != nil {
		log.Fatal(err)
	}
	leader := <-changes
	fmt.Printf("%s leads, acknowledged: %v\n", leader.Data, leader.Acknowledged)
	// Here the leader replays its log.
	if err := leadership.Acknowledge(ctx, nil); err != nil {
		log.Fatal(err)
	}
	leader = <-changes
	fmt.Printf("%s leads, acknowledged: %v\n", leader.Data, leader.Acknowledged)
	// Output:
	// no leader: true
	// 10.0.0.1:80 leads, acknowledged: false
	// 10.0.0.1:80 leads, acknowledged: true
}
