package zookeeper_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// openExample is a session on a server in this process; an application gives
// the addresses of its ensemble.
func openExample(ctx context.Context) (s recipes.Session, end func()) {
	srv, err := zkserver.Listen(zkserver.Config{})
	if err != nil {
		log.Fatal(err)
	}
	s, err = zookeeper.Open(ctx, recipes.SessionConfig{Servers: []string{srv.Addr()}})
	if err != nil {
		log.Fatal(err)
	}
	return s, func() { s.Close(ctx); srv.Close() }
}

// A writer rebuilds an index, and lets readers in while it goes on reading.
func Example_sharedLock() {
	ctx := context.Background()
	s, end := openExample(ctx)
	defer end()

	index, err := s.SharedLock("/app/index", recipes.SharedLockConfig{})
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

// A holder that can be asked to give way, and finishes what it does.
func Example_revocable() {
	ctx := context.Background()
	s, end := openExample(ctx)
	defer end()

	lock, err := s.SharedLock("/app/report", recipes.SharedLockConfig{Revocable: true, Grace: time.Minute})
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

	// Elsewhere: who holds it, and could they hurry? After a minute it is taken.
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

// At most two downloads at a time, in all processes together.
func Example_semaphore() {
	ctx := context.Background()
	s, end := openExample(ctx)
	defer end()

	downloads, err := s.Semaphore("/app/downloads", recipes.SemaphoreConfig{Permits: 2})
	if err != nil {
		log.Fatal(err)
	}
	first, err := downloads.Acquire(ctx)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := downloads.Acquire(ctx); err != nil {
		log.Fatal(err)
	}
	_, err = downloads.TryAcquire(ctx)
	fmt.Println("a third is refused:", errors.Is(err, recipes.ErrContended))
	if err := first.Release(ctx); err != nil {
		log.Fatal(err)
	}
	_, err = downloads.TryAcquire(ctx)
	fmt.Println("and let in when one has left:", err)
	// Output:
	// a third is refused: true
	// and let in when one has left: <nil>
}
