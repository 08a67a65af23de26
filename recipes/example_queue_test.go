package recipes_test

import (
	"context"
	"fmt"
	"log"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// A worker receives jobs and acknowledges them. When a worker dies with a job,
// the job is delivered to another.
func ExampleQueue() {
	ctx := context.Background()
	jobs := func(session recipes.Client) recipes.Queue {
		queue, err := session.Queue("/app/jobs", recipes.QueueConfig{MaxDeliveries: 3})
		if err != nil {
			log.Fatal(err)
		}
		return queue
	}

	producer := open(ctx)
	defer producer.Close(ctx)
	if _, err := jobs(producer).PutMany(ctx, []byte("resize a.png"), []byte("resize b.png")); err != nil {
		log.Fatal(err)
	}

	unlucky := open(ctx)
	d, err := jobs(unlucky).Receive(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("received %q, attempt %d\n", d.Element().Data, d.Attempt())
	unlucky.Close(ctx) // or it dies

	worker := open(ctx)
	defer worker.Close(ctx)
	queue := jobs(worker)
	for range 2 {
		d, err := queue.Receive(ctx)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("received %q, attempt %d\n", d.Element().Data, d.Attempt())
		if err := d.Ack(ctx); err != nil {
			log.Fatal(err)
		}
	}
	left, err := queue.Len(ctx)
	fmt.Println("left:", left, err)
	// Output:
	// received "resize a.png", attempt 1
	// received "resize a.png", attempt 2
	// received "resize b.png", attempt 1
	// left: 0 <nil>
}

// A worker of small jobs receives and acknowledges them in batches: a batch is one transaction,
// whatever its size.
func ExampleQueue_batch() {
	ctx := context.Background()
	session := open(ctx)
	defer session.Close(ctx)
	queue, err := session.Queue("/app/mails", recipes.QueueConfig{})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := queue.PutMany(ctx, []byte("ann"), []byte("bob"), []byte("eve")); err != nil {
		log.Fatal(err)
	}
	for range 2 {
		batch, err := queue.ReceiveMany(ctx, 2) // waits for the first one only
		if err != nil {
			log.Fatal(err)
		}
		for _, d := range batch {
			fmt.Printf("mail to %s\n", d.Element().Data)
		}
		if err := queue.AckMany(ctx, batch...); err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// mail to ann
	// mail to bob
	// mail to eve
}

// Urgent jobs come before others, whenever they were put.
func ExamplePriorityQueue() {
	ctx := context.Background()
	session := open(ctx)
	defer session.Close(ctx)
	queue, err := session.PriorityQueue("/app/urgent", recipes.QueueConfig{})
	if err != nil {
		log.Fatal(err)
	}
	for _, job := range []struct {
		priority int
		data     string
	}{{20, "reindex"}, {5, "mail"}, {5, "invoice"}, {0, "page the operator"}} {
		if _, err := queue.Put(ctx, job.priority, []byte(job.data)); err != nil {
			log.Fatal(err)
		}
	}
	for range 4 {
		element, err := queue.Take(ctx)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%02d %s\n", element.Priority, element.Data)
	}
	// Output:
	// 00 page the operator
	// 05 mail
	// 05 invoice
	// 20 reindex
}
