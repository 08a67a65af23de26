package zookeeper_test

import (
	"context"
	"fmt"

	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// A worker receives jobs and acknowledges them. One that dies with a job has it
// delivered to another.
func Example_queue() {
	server, err := zkserver.Listen(zkserver.Config{}) // or a real ensemble
	if err != nil {
		panic(err)
	}
	defer server.Close()
	ctx := context.Background()
	open := func() (recipes.Session, recipes.Queue) {
		s, err := zookeeper.Open(ctx, recipes.SessionConfig{Servers: []string{server.Addr()}})
		if err != nil {
			panic(err)
		}
		q, err := s.Queue("/app/jobs", recipes.QueueConfig{MaxDeliveries: 3})
		if err != nil {
			panic(err)
		}
		return s, q
	}

	producer, jobs := open()
	defer producer.Close(ctx)
	if _, err := jobs.PutMany(ctx, []byte("resize a.png"), []byte("resize b.png")); err != nil {
		panic(err)
	}

	unlucky, q := open()
	d, err := q.Receive(ctx)
	if err != nil {
		panic(err)
	}
	fmt.Printf("received %q, attempt %d\n", d.Element().Data, d.Attempt())
	unlucky.Close(ctx) // or it dies

	worker, q := open()
	defer worker.Close(ctx)
	for range 2 {
		d, err := q.Receive(ctx)
		if err != nil {
			panic(err)
		}
		fmt.Printf("received %q, attempt %d\n", d.Element().Data, d.Attempt())
		if err := d.Ack(ctx); err != nil {
			panic(err)
		}
	}
	left, err := q.Len(ctx)
	if err != nil {
		panic(err)
	}
	fmt.Println("left:", left)
	// Output:
	// received "resize a.png", attempt 1
	// received "resize a.png", attempt 2
	// received "resize b.png", attempt 1
	// left: 0
}

// Urgent jobs go before others, whenever they were put.
func Example_priorityQueue() {
	server, err := zkserver.Listen(zkserver.Config{}) // or a real ensemble
	if err != nil {
		panic(err)
	}
	defer server.Close()
	ctx := context.Background()
	s, err := zookeeper.Open(ctx, recipes.SessionConfig{Servers: []string{server.Addr()}})
	if err != nil {
		panic(err)
	}
	defer s.Close(ctx)
	q, err := s.PriorityQueue("/app/jobs", recipes.QueueConfig{})
	if err != nil {
		panic(err)
	}
	for _, job := range []struct {
		priority int
		data     string
	}{{20, "reindex"}, {5, "mail"}, {5, "invoice"}, {0, "page the operator"}} {
		if _, err := q.Put(ctx, job.priority, []byte(job.data)); err != nil {
			panic(err)
		}
	}
	for range 4 {
		e, err := q.Take(ctx)
		if err != nil {
			panic(err)
		}
		fmt.Printf("%02d %s\n", e.Priority, e.Data)
	}
	// Output:
	// 00 page the operator
	// 05 mail
	// 05 invoice
	// 20 reindex
}
