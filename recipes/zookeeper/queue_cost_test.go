package zookeeper_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// cost is what an operation takes of the server.
type cost struct{ writes, reads, events int64 }

func (c cost) String() string {
	return fmt.Sprintf("%d writes, %d reads, %d watch events", c.writes, c.reads, c.events)
}

func costOf(srv *zkserver.Server, f func()) cost {
	before := srv.Counters()
	f()
	d := srv.Counters().Sub(before)
	return cost{d.Writes, d.Reads, d.WatchEvents}
}

// What the package comment and the README say that a queue costs, once its
// receipt has been created.
func TestTheCostOfAQueue(t *testing.T) {
	srv, ctx := embedded(t), bounded(t)
	q := queueOf(t, open(t, srv), "/q", recipes.QueueConfig{})
	bounded := queueOf(t, open(t, srv), "/q", recipes.QueueConfig{Capacity: 1000})
	c := queueOf(t, open(t, srv), "/q", recipes.QueueConfig{})
	p := must[recipes.PriorityQueue](t)(open(t, srv).PriorityQueue("/p", recipes.QueueConfig{}))
	var data [][]byte
	for range 100 {
		data = append(data, []byte("x"))
	}
	must[[]recipes.ElementID](t)(q.PutMany(ctx, data...))
	must[[]recipes.ElementID](t)(p.PutMany(ctx, 1, data...))
	must[recipes.ElementID](t)(bounded.Put(ctx, nil))
	must[recipes.Element](t)(c.Take(ctx))
	if err := must[recipes.Delivery](t)(c.Receive(ctx)).Ack(ctx); err != nil {
		t.Fatal(err)
	}
	must[recipes.Element](t)(p.Take(ctx))
	var d recipes.Delivery
	for _, tt := range []struct {
		name string
		do   func()
		want cost
	}{
		{"Put", func() { must[recipes.ElementID](t)(q.Put(ctx, nil)) }, cost{writes: 1}},
		{"PutMany of 100", func() { must[[]recipes.ElementID](t)(q.PutMany(ctx, data...)) }, cost{writes: 1}},
		{"Put, bounded", func() { must[recipes.ElementID](t)(bounded.Put(ctx, nil)) }, cost{writes: 1, reads: 2}},
		{"Take, listed", func() { must[recipes.Element](t)(c.Take(ctx)) }, cost{writes: 1, reads: 1}},
		{"Receive, listed", func() { d = must[recipes.Delivery](t)(c.Receive(ctx)) }, cost{writes: 1, reads: 1}},
		{"Ack", func() { d.Ack(ctx) }, cost{writes: 1}},
		{"Receive, listed, again", func() { d = must[recipes.Delivery](t)(c.Receive(ctx)) }, cost{writes: 1, reads: 1}},
		{"Return", func() { d.Return(ctx) }, cost{writes: 1}},
		// With priorities each taking lists afresh: one's own fires the watch.
		{"Take, priority", func() { must[recipes.Element](t)(p.Take(ctx)) }, cost{writes: 1, reads: 2, events: 1}},
		{"Len", func() { must[int](t)(q.Len(ctx)) }, cost{reads: 1}},
	} {
		if got := costOf(srv, tt.do); got != tt.want {
			t.Errorf("%s: %v; want %v", tt.name, got, tt.want)
		}
	}
}

// Waiting costs no request. As in the text, an element wakes every session that
// waits: when it is put, and when it is claimed and taken, if the session has
// looked by then.
func TestWaitingForAnElementCostsNothing(t *testing.T) {
	srv, ctx := embedded(t), bounded(t)
	producer := queueOf(t, open(t, srv), "/q", recipes.QueueConfig{Capacity: 1})
	must[recipes.ElementID](t)(producer.Put(ctx, nil)) // exists, receipts and bound too
	must[recipes.Element](t)(producer.Take(ctx))

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	const waiters = 4
	results := make(chan error, 2*waiters+1)
	for range waiters {
		q := queueOf(t, open(t, srv), "/q", recipes.QueueConfig{})
		go func() { _, err := q.Take(ctx); results <- err }()
		go func() { _, err := q.Receive(ctx); results <- err }()
	}
	idle := func() int64 { // all are waiting: what each of them reads was read
		for {
			n := srv.Counters().Reads
			if srv.Watches() >= waiters {
				return n
			}
			if ctx.Err() != nil {
				t.Fatal("they do not wait")
			}
		}
	}
	idle()
	quiet(t, srv)
	got := costOf(srv, func() { must[recipes.ElementID](t)(producer.Put(ctx, nil)); <-results })
	if got.events > 3*waiters {
		t.Errorf("an element caused %d watch events; %d sessions wait", got.events, waiters)
	}
	quiet(t, srv)
	cancel()
	for range 2*waiters - 1 {
		if err := <-results; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
}

// quiet checks that nothing is asked for the time of several round trips after
// it has become quiet.
func quiet(t *testing.T, srv *zkserver.Server) {
	t.Helper()
	other := open(t, srv)
	round := func() int64 {
		for range 50 {
			must[int](t)(queueOf(t, other, "/elsewhere", recipes.QueueConfig{}).Len(bounded(t)))
		}
		return srv.Counters().Reads + srv.Counters().Writes
	}
	round() // lets those who are awake come to rest
	before := round()
	if n := round() - before - 50; n != 0 {
		t.Errorf("%d requests while all are waiting", n)
	}
}
