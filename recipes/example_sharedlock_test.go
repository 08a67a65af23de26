package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// A writer rebuilds an index. Then it continues as a reader, beside others.
func ExampleSharedLock() {
	ctx := context.Background()
	session := open(ctx)
	defer session.Close(ctx)

	index, err := session.SharedLock("/app/index", recipes.SharedLockConfig{})
	if err != nil {
		log.Fatal(err)
	}
	writer, err := index.AcquireWrite(ctx)
	if err != nil {
		log.Fatal(err)
	}
	_, err = index.TryRead(ctx)
	fmt.Println("a reader is refused:", errors.Is(err, recipes.ErrContended))

	if err := writer.Downgrade(ctx); err != nil {
		log.Fatal(err)
	}
	reader, err := index.TryRead(ctx)
	if err != nil {
		log.Fatal(err)
	}
	_, err = index.TryWrite(ctx)
	fmt.Println("after the downgrade it reads, and a writer is refused:", errors.Is(err, recipes.ErrContended))
	fmt.Println(writer.Release(ctx), reader.Release(ctx))
	// Output:
	// a reader is refused: true
	// after the downgrade it reads, and a writer is refused: true
	// <nil> <nil>
}

// A holder can be asked to give way. It finishes its work and releases.
func ExampleSharedLock_revoke() {
	ctx := context.Background()
	session := open(ctx)
	defer session.Close(ctx)

	lock, err := session.SharedLock("/app/report", recipes.SharedLockConfig{Revocable: true, Grace: time.Minute})
	if err != nil {
		log.Fatal(err)
	}
	hold, err := lock.AcquireWrite(ctx)
	if err != nil {
		log.Fatal(err)
	}
	finished := make(chan error)
	go func() {
		select {
		case <-hold.Revoked():
			fmt.Println("asked to give way: finishing")
		case <-hold.Done():
			fmt.Println("lost:", hold.Err())
		}
		finished <- hold.Release(ctx)
	}()

	// Another process asks the holder. After a minute it would revoke the lock.
	contenders, err := lock.Contenders(ctx)
	if err != nil {
		log.Fatal(err)
	}
	if err := lock.RevokeForced(ctx, contenders[0].Znode); err != nil {
		log.Fatal(err)
	}
	fmt.Println(<-finished)
	// Output:
	// asked to give way: finishing
	// <nil>
}
