package recipes_test

import (
	"context"
	"fmt"
	"log"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// A backup that runs at the lowest priority gives way to a deployment.
func ExamplePriorityLock() {
	ctx := context.Background()
	session := open(ctx)
	defer session.Close(ctx)

	backups, err := session.PriorityLock("/app/database", recipes.PriorityLockConfig{Priority: recipes.LowestPriority, Revocable: true})
	if err != nil {
		log.Fatal(err)
	}
	backup, err := backups.AcquireWrite(ctx)
	if err != nil {
		log.Fatal(err)
	}
	stopped := make(chan error)
	go func() {
		<-backup.Revoked()
		fmt.Println("backup: giving way")
		stopped <- backup.Release(ctx)
	}()

	// In another process:
	deployments, err := session.PriorityLock("/app/database", recipes.PriorityLockConfig{Priority: 10, Ask: true})
	if err != nil {
		log.Fatal(err)
	}
	deployment, err := deployments.AcquireWrite(ctx)
	if err != nil {
		log.Fatal(err)
	}
	if err := <-stopped; err != nil {
		log.Fatal(err)
	}
	fmt.Println("deployment: granted, with a larger token:", deployment.Token() > backup.Token())
	fmt.Println(deployment.Release(ctx))
	// Output:
	// backup: giving way
	// deployment: granted, with a larger token: true
	// <nil>
}
