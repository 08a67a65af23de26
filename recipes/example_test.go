package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// An application opens a session, gets a lock by its path, and works while it holds
// the lock. Only the opener decides how to connect: for the plugin, pass the Open
// method of the plugin that host.Launch returns.
func Example() {
	ctx := context.Background()
	if err := work(ctx, zookeeper.Open); err != nil {
		log.Fatal(err)
	}
	// Output:
	// worked under the lock
}

func work(ctx context.Context, open recipes.Opener) (err error) {
	session, err := open(ctx, recipes.SessionConfig{Servers: servers})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, session.Close(ctx)) }()

	lock, err := session.Lock("/app/work", recipes.LockConfig{})
	if err != nil {
		return err
	}
	hold, err := lock.Acquire(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, hold.Release(ctx)) }()

	// held ends with the hold, so that the job stops when the lock is lost.
	held, stop := recipes.WithHold(ctx, hold)
	defer stop()
	return job(held)
}

func job(ctx context.Context) error {
	if ctx.Err() == nil {
		fmt.Println("worked under the lock")
	}
	return ctx.Err()
}
