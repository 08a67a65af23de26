package host_test

import (
	"context"
	"fmt"
	"log"

	"github.com/zkrecipes/zkrecipes/host"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// A service that holds a lock replaces its plugin. It keeps the lock, with the same token.
func ExampleSupervisor_Upgrade() {
	ctx := context.Background()
	supervisor, err := host.Supervise(ctx, host.SupervisorConfig{
		Plugin: host.Config{Path: pluginPath, Checksum: checksum},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer supervisor.Close(ctx)
	session, err := supervisor.Open(ctx, recipes.SessionConfig{Servers: servers})
	if err != nil {
		log.Fatal(err)
	}
	lock, err := session.Lock("/service/upgraded", recipes.LockConfig{})
	if err != nil {
		log.Fatal(err)
	}
	hold, err := lock.Acquire(ctx)
	if err != nil {
		log.Fatal(err)
	}
	token, old := hold.Token(), supervisor.Plugin()

	newPath, newChecksum := pluginPath, checksum // a service has another executable
	if err := supervisor.Upgrade(ctx, host.UpgradeConfig{
		Plugin: host.Config{Path: newPath, Checksum: newChecksum},
	}); err != nil {
		log.Fatal(err) // if err matches host.ErrNotUpgraded, the old plugin still serves
	}
	fmt.Println("another plugin:", supervisor.Plugin() != old)
	fmt.Println("the lock is held:", hold.Err() == nil && hold.Token() == token)
	if err := hold.Release(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// another plugin: true
	// the lock is held: true
}
