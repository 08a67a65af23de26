package queue_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// The package comment and the README give these costs, for a session whose receipt exists.
func TestTheCostOfAQueue(t *testing.T) {
	srv, ctx := zktest.Embedded(t), zktest.Bounded(t)
	q := zktest.QueueOf(t, zktest.Open(t, srv), "/q", recipes.QueueConfig{})
	bounded := zktest.QueueOf(t, zktest.Open(t, srv), "/q", recipes.QueueConfig{Capacity: 1000})
	c := zktest.QueueOf(t, zktest.Open(t, srv), "/q", recipes.QueueConfig{})
	p := must.Get(zktest.Open(t, srv).PriorityQueue("/p", recipes.QueueConfig{}))(t)
	var data [][]byte
	for range 100 {
		data = append(data, []byte("x"))
	}
	must.Get(q.PutMany(ctx, data...))(t)
	must.Get(p.PutMany(ctx, 1, data...))(t)
	must.Get(bounded.Put(ctx, nil))(t)
	must.Get(c.Take(ctx))(t)
	must.Do(t, must.Get(c.Receive(ctx))(t).Ack(ctx))
	must.Get(p.Take(ctx))(t)
	var d recipes.Delivery
	for _, tt := range []struct {
		name string
		do   func()
		want zktest.Cost
	}{
		{"Put", func() { must.Get(q.Put(ctx, nil))(t) }, zktest.Cost{Writes: 1}},
		{"PutMany of 100", func() { must.Get(q.PutMany(ctx, data...))(t) }, zktest.Cost{Writes: 1}},
		{"Put, bounded", func() { must.Get(bounded.Put(ctx, nil))(t) }, zktest.Cost{Writes: 1, Reads: 2}},
		{"Take, listed", func() { must.Get(c.Take(ctx))(t) }, zktest.Cost{Writes: 1, Reads: 1}},
		{"Receive, listed", func() { d = must.Get(c.Receive(ctx))(t) }, zktest.Cost{Writes: 1, Reads: 1}},
		{"Ack", func() { d.Ack(ctx) }, zktest.Cost{Writes: 1}},
		{"Receive, listed, again", func() { d = must.Get(c.Receive(ctx))(t) }, zktest.Cost{Writes: 1, Reads: 1}},
		{"Return", func() { d.Return(ctx) }, zktest.Cost{Writes: 1}},
		// With priorities each Take reads the queue's record, because the Take before has fired the watch.
		{"Take, priority", func() { must.Get(p.Take(ctx))(t) }, zktest.Cost{Writes: 1, Reads: 2}},
		{"Len", func() { must.Get(q.Len(ctx))(t) }, zktest.Cost{Reads: 1}},
	} {
		if got := zktest.CostOf(srv, tt.do); got != tt.want {
			t.Errorf("%s: %v; want %v", tt.name, got, tt.want)
		}
	}
}

// Waiting costs no request. As in the text, an element wakes every session that waits: when it
// is put, and again when it is claimed and taken, if the session has listed by then.
func TestWaitingForAnElementCostsNothing(t *testing.T) {
	zktest.OnVirtualTime(t, func(ctx context.Context, t *testing.T, srv *zkserver.Server, producing recipes.Client) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		producer := zktest.QueueOf(t, producing, "/q", recipes.QueueConfig{})

		const waiters = 4
		results := make(chan error, 2*waiters)
		for range waiters {
			q := zktest.QueueOf(t, zktest.OpenVirtual(t, srv), "/q", recipes.QueueConfig{})
			go func() { _, err := q.Take(ctx); results <- err }()
			go func() { _, err := q.Receive(ctx); results <- err }()
		}
		zktest.IdleFor(t, srv, time.Hour)
		for range 2 {
			got := zktest.CostOf(srv, func() {
				must.Get(producer.Put(ctx, nil))(t)
				synctest.Wait()
			})
			if got.Events < waiters || got.Events > 6*waiters { // the first put also creates the queue and its children
				t.Errorf("an element caused %d watch events; %d sessions wait", got.Events, waiters)
			}
			must.Report(t, <-results)
			zktest.IdleFor(t, srv, time.Hour)
		}
		cancel()
		for range 2*waiters - 2 {
			if err := <-results; !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		}
	})
}
