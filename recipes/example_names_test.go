package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// A server registers its address for as long as it lives. Clients look it up.
func ExampleNames() {
	ctx := context.Background()
	session := open(ctx)
	defer session.Close(ctx)

	names, err := session.Names("/app/services")
	if err != nil {
		log.Fatal(err)
	}
	registration, err := names.Register(ctx, "billing", []byte("10.0.0.7:8080"))
	if err != nil {
		log.Fatal(err)
	}
	record, err := names.Lookup(ctx, "billing")
	fmt.Printf("%s is at %s, %v\n", record.Name, record.Data, err)

	_, err = names.Register(ctx, "billing", []byte("10.0.0.8:8080"))
	if taken, ok := errors.AsType[*recipes.TakenError](err); ok {
		fmt.Println("taken by this session:", taken.SessionID == session.ID())
	}
	fmt.Println(registration.Unregister(ctx))
	_, err = names.Lookup(ctx, "billing")
	fmt.Println("not registered:", errors.Is(err, recipes.ErrNoNode))
	// Output:
	// billing is at 10.0.0.7:8080, <nil>
	// taken by this session: true
	// <nil>
	// not registered: true
}
