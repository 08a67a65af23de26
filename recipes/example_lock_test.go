package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// Only one backup of a database runs at a time, in all processes together.
func ExampleLock() {
	ctx := context.Background()
	session := open(ctx)
	defer session.Close(ctx)

	backup, err := session.Lock("/backups/db1", recipes.LockConfig{Data: []byte("nightly")})
	if err != nil {
		log.Fatal(err)
	}
	hold, err := backup.Acquire(ctx) // waits for its turn
	if err != nil {
		log.Fatal(err)
	}
	_, err = backup.TryAcquire(ctx) // does not wait
	fmt.Println("another backup is refused:", errors.Is(err, recipes.ErrContended))

	contenders, err := backup.Contenders(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("the holder says %q\n", contenders[0].Data)
	fmt.Println("released:", hold.Release(ctx))
	// Output:
	// another backup is refused: true
	// the holder says "nightly"
	// released: <nil>
}

// The holder works until it has finished or the lock is lost.
func ExampleHold() {
	ctx := context.Background()
	session := open(ctx)
	defer session.Close(ctx)
	lock, err := session.Lock("/app/import", recipes.LockConfig{})
	if err != nil {
		log.Fatal(err)
	}
	hold, err := lock.Acquire(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer hold.Release(ctx)

	records := make(chan string, 2)
	records <- "first"
	records <- "second"
	close(records)
	for {
		select {
		case <-hold.Done(): // for example, the session is lost
			fmt.Println("stop:", hold.Err())
			return
		case record, more := <-records:
			if !more {
				fmt.Println("finished")
				return
			}
			fmt.Println("import", record)
		}
	}
	// Output:
	// import first
	// import second
	// finished
}

// ZooKeeper commits a guarded write only while the lock is held. So a holder that
// was paused for too long cannot overwrite the data of the next holder. To write
// to another store, send it the token, and have it refuse smaller ones.
func ExampleHold_write() {
	ctx := context.Background()
	session := open(ctx)
	defer session.Close(ctx)
	lock, err := session.Lock("/app/schema", recipes.LockConfig{})
	if err != nil {
		log.Fatal(err)
	}
	hold, err := lock.Acquire(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("written:", hold.Write(ctx, recipes.Set("/app/schema", []byte("version 13"), recipes.AnyVersion)))

	// The session ends: it expires, or as here it is closed.
	if err := session.Close(ctx); err != nil {
		log.Fatal(err)
	}
	err = hold.Write(ctx, recipes.Set("/app/schema", []byte("version 14"), recipes.AnyVersion))
	fmt.Println("refused:", errors.Is(err, recipes.ErrNotHeld))
	// Output:
	// written: <nil>
	// refused: true
}
