package queue_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// listings returns how many listings of any path do makes.
func listings(srv *zkserver.Server, do func()) int64 {
	before := srv.Counters().Requests[zkserver.OpGetChildren2]
	do()
	return int64(srv.Counters().Requests[zkserver.OpGetChildren2] - before)
}

// The listing of a long queue is large. Consumers use it until it is exhausted, even after a
// failed Take, with priorities, and while others take.
func TestALongQueueIsListedOnce(t *testing.T) {
	const n = 200
	srv, ctx := zktest.Embedded(t), zktest.Bounded(t)
	data := make([][]byte, n)
	q := zktest.QueueOf(t, zktest.Open(t, srv), "/q", recipes.QueueConfig{})
	p := must.Get(zktest.Open(t, srv).PriorityQueue("/p", recipes.QueueConfig{}))(t)
	other := must.Get(zktest.Open(t, srv).PriorityQueue("/p", recipes.QueueConfig{}))(t)
	must.Get(q.PutMany(ctx, data...))(t)
	must.Get(p.PutMany(ctx, 3, data...))(t)
	must.Get(q.Take(ctx))(t)
	must.Get(p.Take(ctx))(t)
	must.Get(other.Take(ctx))(t)

	if made := listings(srv, func() {
		for range n / 4 {
			first := must.Get(q.Peek(ctx))(t) // one listing
			gone, cancel := context.WithCancel(ctx)
			held := make(chan struct{})
			srv.SetFault(func(zkserver.Request) zkserver.Fault {
				cancel()
				return zkserver.Fault{Hold: held}
			})
			if _, err := q.Take(gone); !errors.Is(err, context.Canceled) {
				t.Fatalf("a Take that is cancelled while it reads: %v", err)
			}
			srv.SetFault(nil)
			close(held)
			if e := must.Get(q.Take(ctx))(t); e.ID != first.ID {
				t.Fatalf("after a Take that failed, %s is taken; the first is %s", e.ID, first.ID)
			}
		}
	}); made != n/4 {
		t.Errorf("taking %d elements of a queue makes %d listings besides those of Peek", n/4, made-n/4)
	}
	if made := listings(srv, func() {
		for range n / 4 {
			must.Get(p.Take(ctx))(t)
			must.Get(other.Take(ctx))(t)
		}
	}); made != 0 {
		t.Errorf("taking %d elements by priority makes %d listings", n/2, made)
	}
}

// Elements that a listing does not contain, and elements that another consumer returns, are found
// although the queue is not listed for each event.
func TestALongListingByPriorityIsNotOutdated(t *testing.T) {
	for _, test := range []struct {
		name string
		do   func(t *testing.T, ctx context.Context, q recipes.PriorityQueue, claimed recipes.Delivery)
		want int // the priority of the next element
	}{
		{"a more urgent element is put", func(t *testing.T, ctx context.Context, q recipes.PriorityQueue, _ recipes.Delivery) {
			must.Get(q.Put(ctx, 1, nil))(t)
		}, 1},
		{"as many are put as are taken", func(t *testing.T, ctx context.Context, q recipes.PriorityQueue, claimed recipes.Delivery) {
			must.Get(q.Take(ctx))(t)
			must.Get(q.Put(ctx, 1, nil))(t)
		}, 1},
		{"an element is returned", func(t *testing.T, ctx context.Context, q recipes.PriorityQueue, claimed recipes.Delivery) {
			must.Do(t, claimed.Return(ctx))
		}, 2},
		{"an element is acknowledged", func(t *testing.T, ctx context.Context, q recipes.PriorityQueue, claimed recipes.Delivery) {
			must.Do(t, claimed.Ack(ctx))
		}, 5},
	} {
		for _, when := range []string{"before the listing", "after the listing"} {
			t.Run(fmt.Sprint(test.name, ", claimed ", when), func(t *testing.T) {
				srv, ctx := zktest.Embedded(t), zktest.Bounded(t)
				q := must.Get(zktest.Open(t, srv).PriorityQueue("/q", recipes.QueueConfig{}))(t)
				other := must.Get(zktest.Open(t, srv).PriorityQueue("/q", recipes.QueueConfig{}))(t)
				must.Get(q.Put(ctx, 0, nil))(t)
				must.Do(t, must.Get(other.Receive(ctx))(t).Ack(ctx)) // creates the claims' parent
				must.Get(q.PutMany(ctx, 5, make([][]byte, 20)...))(t)
				must.Get(q.Put(ctx, 2, nil))(t)
				must.Get(q.Put(ctx, 1, nil))(t)
				var claimed recipes.Delivery
				claim := func() {
					must.Get(other.Take(ctx))(t)
					claimed = must.Get(other.Receive(ctx))(t)
				}
				switch when {
				case "before the listing":
					claim()
					must.Get(q.Take(ctx))(t)
				case "after the listing":
					must.Get(q.Put(ctx, 0, nil))(t)
					must.Get(q.Take(ctx))(t)
					claim()
					must.Get(q.Take(ctx))(t)
				}
				test.do(t, ctx, other, claimed)
				if e := must.Get(q.Take(ctx))(t); e.Priority != test.want {
					t.Errorf("an element of priority %d is taken; the first has %d", e.Priority, test.want)
				}
			})
		}
	}
}
