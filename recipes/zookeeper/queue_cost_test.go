package zookeeper_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
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
	p := must.Get(open(t, srv).PriorityQueue("/p", recipes.QueueConfig{}))(t)
	var data [][]byte
	for range 100 {
		data = append(data, []byte("x"))
	}
	must.Get(q.PutMany(ctx, data...))(t)
	must.Get(p.PutMany(ctx, 1, data...))(t)
	must.Get(bounded.Put(ctx, nil))(t)
	must.Get(c.Take(ctx))(t)
	if err := must.Get(c.Receive(ctx))(t).Ack(ctx); err != nil {
		t.Fatal(err)
	}
	must.Get(p.Take(ctx))(t)
	var d recipes.Delivery
	for _, tt := range []struct {
		name string
		do   func()
		want cost
	}{
		{"Put", func() { must.Get(q.Put(ctx, nil))(t) }, cost{writes: 1}},
		{"PutMany of 100", func() { must.Get(q.PutMany(ctx, data...))(t) }, cost{writes: 1}},
		{"Put, bounded", func() { must.Get(bounded.Put(ctx, nil))(t) }, cost{writes: 1, reads: 2}},
		{"Take, listed", func() { must.Get(c.Take(ctx))(t) }, cost{writes: 1, reads: 1}},
		{"Receive, listed", func() { d = must.Get(c.Receive(ctx))(t) }, cost{writes: 1, reads: 1}},
		{"Ack", func() { d.Ack(ctx) }, cost{writes: 1}},
		{"Receive, listed, again", func() { d = must.Get(c.Receive(ctx))(t) }, cost{writes: 1, reads: 1}},
		{"Return", func() { d.Return(ctx) }, cost{writes: 1}},
		// With priorities each taking lists afresh: one's own fires the watch.
		{"Take, priority", func() { must.Get(p.Take(ctx))(t) }, cost{writes: 1, reads: 2, events: 1}},
		{"Len", func() { must.Get(q.Len(ctx))(t) }, cost{reads: 1}},
	} {
		if got := costOf(srv, tt.do); got != tt.want {
			t.Errorf("%s: %v; want %v", tt.name, got, tt.want)
		}
	}
}

// Waiting costs no request, in an hour of virtual time. As in the text, an
// element wakes every session that waits: when it is put, and when it is claimed
// and taken, if the session has looked by then.
func TestWaitingForAnElementCostsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zkserver.New(zkserver.Config{})
		defer srv.Close()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		producing, closeProducer := openIn(t, srv)
		defer closeProducer()
		producer := queueOf(t, producing, "/q", recipes.QueueConfig{})

		const waiters = 4
		results := make(chan error, 2*waiters)
		for range waiters {
			s, closeSession := openIn(t, srv)
			defer closeSession()
			q := queueOf(t, s, "/q", recipes.QueueConfig{})
			go func() { _, err := q.Take(ctx); results <- err }()
			go func() { _, err := q.Receive(ctx); results <- err }()
		}
		idleFor(t, srv, time.Hour)
		for range 2 {
			got := costOf(srv, func() {
				must.Get(producer.Put(ctx, nil))(t)
				synctest.Wait()
			})
			if got.events < waiters || got.events > 6*waiters { // the first makes the queue and its children too
				t.Errorf("an element caused %d watch events; %d sessions wait", got.events, waiters)
			}
			if err := <-results; err != nil {
				t.Error(err)
			}
			idleFor(t, srv, time.Hour)
		}
		cancel()
		for range 2*waiters - 2 {
			if err := <-results; !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		}
	})
}

// openIn opens a session in a bubble of virtual time.
func openIn(t *testing.T, srv *zkserver.Server) (s recipes.Client, end func()) {
	t.Helper()
	s = must.Get(zookeeper.OpenWith((&network{srv: srv}).dial)(t.Context(), recipes.SessionConfig{
		Servers: []string{"server"}, SessionTimeout: 9 * time.Second, MaxPacket: 64 << 10,
	}))(t)
	return s, func() { s.Close(context.Background()) }
}

// onVirtualTime runs a test in a bubble of virtual time, with a server and a session.
func onVirtualTime(t *testing.T, f func(ctx context.Context, t *testing.T, srv *zkserver.Server, s recipes.Client)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		srv := zkserver.New(zkserver.Config{})
		t.Cleanup(func() { srv.Close() })
		f(t.Context(), t, srv, openVirtual(t, srv))
	})
}

// openVirtual is openIn for a test whose sessions all last as long as it.
func openVirtual(t *testing.T, srv *zkserver.Server) recipes.Client {
	t.Helper()
	s, end := openIn(t, srv)
	t.Cleanup(end)
	return s
}

// idle is idleFor ten minutes, which cost less to simulate.
func idle(t *testing.T, srv *zkserver.Server) {
	t.Helper()
	idleFor(t, srv, 10*time.Minute)
}

// idleFor checks that nothing but pings, and the confirming requests of sessions that hold
// something, is sent for so long on virtual time, once all contenders wait. A confirming
// request is a sync and one exists for each path held.
func idleFor(t *testing.T, srv *zkserver.Server, d time.Duration) {
	t.Helper()
	time.Sleep(10 * time.Second) // the first confirming request has each path listed, once
	synctest.Wait()
	before := srv.Counters()
	got := costOf(srv, func() { time.Sleep(d); synctest.Wait() })
	sent := srv.Counters().Sub(before)
	syncs, inspections := sent.Requests[zkserver.OpSync], sent.Requests[zkserver.OpExists]
	if got.reads -= inspections; got != (cost{}) || inspections > syncs {
		t.Errorf("%v, %d syncs, and %d reads of held paths while all wait", got, syncs, inspections)
	}
	if sent.Pings+syncs == 0 {
		t.Error("neither pings nor syncs: no time has passed")
	}
}
