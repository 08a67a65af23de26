package host_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/zkrecipes/zkrecipes/host"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// A host launches the plugin, opens a session through it, and works while it holds a lock.
// Without a Path, Launch calls Find.
func ExampleLaunch() {
	if err := backup(context.Background()); err != nil {
		log.Fatal(err)
	}
	// Output:
	// backing up under the lock
}

func backup(ctx context.Context) (err error) {
	plugin, err := host.Launch(ctx, host.Config{Path: pluginPath, Checksum: checksum})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, plugin.Close(ctx)) }()

	session, err := plugin.Open(ctx, recipes.SessionConfig{Servers: servers})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, session.Close(ctx)) }()

	lock, err := session.Lock("/backups/db1", recipes.LockConfig{})
	if err != nil {
		return err
	}
	hold, err := lock.Acquire(ctx)
	if err != nil {
		return err
	}
	fmt.Println("backing up under the lock")
	return hold.Release(ctx)
}
