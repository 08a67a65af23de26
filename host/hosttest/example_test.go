package hosttest_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/zkrecipes/zkrecipes/host/hosttest"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// backup is a function of an application.
func backup(ctx context.Context, session recipes.Recipes) error {
	lock, err := session.Lock("/backups/db1", recipes.LockConfig{})
	if err != nil {
		return err
	}
	hold, err := lock.Acquire(ctx)
	if err != nil {
		return err
	}
	fmt.Println("backing up")
	return hold.Release(ctx)
}

// An application's test needs no ZooKeeper and no plugin executable.
func ExampleNew() {
	TestBackup := func(t *testing.T) {
		must.Report(t, backup(t.Context(), hosttest.New(t).Open(t)))
	}
	_ = TestBackup
}
