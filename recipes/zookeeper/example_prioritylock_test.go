package zookeeper_test

import (
	"context"
	"fmt"
	"log"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// A backup that runs at the lowest priority and gives way to a deployment.
func Example_priorityLock() {
	ctx := context.Background()
	s, end := openExample(ctx)
	defer end()

	backups, err := s.PriorityLock("/app/database", recipes.PriorityLockConfig{Priority: 90, Revocable: true})
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

	// Elsewhere.
	deployments, err := s.PriorityLock("/app/database", recipes.PriorityLockConfig{Priority: 10, Ask: true})
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
