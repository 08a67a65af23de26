package zookeeper_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// A server registers its address for as long as it lives; clients look it up.
func Example_names() {
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

	names, err := session.Names("/app/services", recipes.NamesConfig{})
	if err != nil {
		panic(err)
	}
	registration, err := names.Register(ctx, "billing", []byte("10.0.0.7:8080"))
	if err != nil {
		panic(err)
	}
	record, err := names.Lookup(ctx, "billing")
	fmt.Printf("%s is at %s, %v\n", record.Name, record.Data, err)

	_, err = names.Register(ctx, "billing", []byte("10.0.0.8:8080"))
	var taken *recipes.TakenError
	if errors.As(err, &taken) {
		fmt.Println("taken by this very session:", taken.SessionID == session.ID())
	}
	fmt.Println(registration.Unregister(ctx))
	_, err = names.Lookup(ctx, "billing")
	fmt.Println("not registered:", errors.Is(err, recipes.ErrNoNode))
	// Output:
	// billing is at 10.0.0.7:8080, <nil>
	// taken by this very session: true
	// <nil>
	// not registered: true
}
