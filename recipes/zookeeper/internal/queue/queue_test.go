package queue_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// Operators see these znodes, with the names of the text.
func TestTheZnodesOfAQueue(t *testing.T) {
	srv, ctx := zktest.Embedded(t), zktest.Bounded(t)
	s := zktest.Open(t, srv)
	q := zktest.QueueOf(t, s, "/app/queue", recipes.QueueConfig{Capacity: 10, MaxDeliveries: 1})
	must.Get(q.PutMany(ctx, []byte("a"), []byte("b"), []byte("c")))(t)
	if err := must.Get(q.Receive(ctx))(t).Return(ctx); err != nil { // its only attempt
		t.Fatal(err)
	}
	must.Get(q.Receive(ctx))(t)
	p := must.Get(s.PriorityQueue("/app/priorities", recipes.QueueConfig{}))(t)
	must.Get(p.Put(ctx, 7, []byte("seven")))(t)

	got := zktest.Layout(srv, "/app")
	for i, name := range got {
		if at := strings.Index(name, "_c_"); at >= 0 {
			got[i] = name[:at+3] + "<guid>" + name[at+3+36:]
		}
	}
	want := []string{
		"priorities",
		"priorities/queue-07-0000000001", // the parent of receipts has taken 0000000000
		"priorities/receipts",
		"priorities/receipts/_c_<guid>-receipt-0000000000",
		"queue",
		"queue/bound",
		"queue/claims",
		"queue/claims/queue-0000000003-1",
		"queue/dead",
		"queue/dead/queue-0000000002",
		"queue/queue-0000000003",
		"queue/queue-0000000004",
		"queue/receipts",
		"queue/receipts/_c_<guid>-receipt-0000000000",
	}
	if !slices.Equal(got, want) {
		t.Errorf("znodes\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestConsumersOfBothKindsShareAQueueWithoutGettingAnythingTwice(t *testing.T) {
	srv, ctx := zktest.Embedded(t), zktest.Bounded(t)
	s, other := zktest.Open(t, srv), zktest.Open(t, srv)
	q, o := zktest.QueueOf(t, s, "/q", recipes.QueueConfig{}), zktest.QueueOf(t, other, "/q", recipes.QueueConfig{})
	for i := range 20 {
		id, err := q.Put(ctx, fmt.Append(nil, i))
		if err != nil || id == "" {
			t.Fatal(id, err)
		}
	}
	var mu sync.Mutex
	seen := map[string]int{}
	var wg sync.WaitGroup
	tctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for i := range 6 {
		consumer := []recipes.Queue{q, o}[i%2]
		wg.Go(func() {
			for {
				var e recipes.Element
				if i%3 == 0 {
					d, err := consumer.Receive(tctx)
					if errors.Is(err, context.Canceled) {
						return
					}
					if err != nil {
						t.Error(err)
						return
					}
					e = d.Element()
					must.Report(t, d.Ack(ctx))
				} else {
					var err error
					e, err = consumer.Take(tctx)
					if errors.Is(err, context.Canceled) {
						return
					}
					if err != nil {
						t.Error(err)
						return
					}
				}
				mu.Lock()
				seen[string(e.Data)]++
				n := len(seen)
				mu.Unlock()
				if n == 40 {
					cancel()
				}
			}
		})
	}
	for i := range 20 {
		must.Get(o.Put(ctx, fmt.Append(nil, 20+i)))(t)
	}
	wg.Wait()
	for k, n := range seen {
		if n != 1 {
			t.Errorf("%s %d times", k, n)
		}
	}
	if len(seen) != 40 {
		t.Errorf("%d elements", len(seen))
	}
	if n := must.Get(q.Len(ctx))(t); n != 0 {
		t.Errorf("%d left", n)
	}
}

// ZOOKEEPER-4372, kazoo#730: sequence numbers wrap around. Compared as strings, the elements
// after the wrap would come first.
func TestAQueueKeepsItsOrderAcrossTheWrap(t *testing.T) {
	srv, ctx := zktest.Embedded(t), zktest.Bounded(t)
	s := zktest.Open(t, srv)
	q := zktest.QueueOf(t, s, "/q", recipes.QueueConfig{})
	p := must.Get(s.PriorityQueue("/p", recipes.QueueConfig{}))(t)
	for _, path := range []string{"/q", "/p"} {
		must.Get(must.Get(s.Lock(path, recipes.LockConfig{}))(t).Acquire(ctx))(t) // creates the path
		must.Do(t, srv.SetSequence(path, 1<<31-3))
	}
	for i := range 6 {
		must.Get(q.Put(ctx, fmt.Append(nil, i)))(t)
		must.Get(p.Put(ctx, 3, fmt.Append(nil, i)))(t)
	}
	for i := range 6 {
		one := must.Get(q.Take(ctx))(t)
		two := must.Get(p.Receive(ctx))(t)
		if string(one.Data) != fmt.Sprint(i) || string(two.Element().Data) != fmt.Sprint(i) {
			t.Errorf("%d: took %q (%s) and received %q (%s)", i, one.Data, one.ID, two.Element().Data, two.Element().ID)
		}
		must.Report(t, two.Ack(ctx))
	}
}

// An acknowledgement ends with its session. Its error says that the session was closed, and does
// not match context.Canceled.
func TestAnAcknowledgementThatEndsWithItsSessionIsNotCancelled(t *testing.T) {
	srv := zktest.Embedded(t)
	ctx := zktest.Bounded(t)
	put := must.Get(zktest.Open(t, srv).Queue("/q", recipes.QueueConfig{}))(t)
	for range 10 { // each run takes one of two ways by chance
		must.Get(put.Put(ctx, nil))(t)
		s := zktest.Open(t, srv)
		d := must.Get(must.Get(s.Queue("/q", recipes.QueueConfig{}))(t).Receive(ctx))(t)
		arrived, proceed := make(chan struct{}), make(chan struct{})
		srv.SetFault(func(r zkserver.Request) zkserver.Fault {
			if r.SessionID != s.ID() || r.Op != zkserver.OpMulti {
				return zkserver.Fault{}
			}
			close(arrived)
			return zkserver.Fault{Hold: proceed}
		})
		acked := make(chan error, 1)
		go func() { acked <- d.Ack(ctx) }()
		<-arrived
		closed := make(chan error, 1)
		go func() { closed <- s.Close(ctx) }()
		err := <-acked
		for _, want := range []error{recipes.ErrNotHeld, recipes.ErrUnknownOutcome, recipes.ErrClosed} {
			if !errors.Is(err, want) {
				t.Errorf("the error is %v; want %v", err, want)
			}
		}
		if errors.Is(err, context.Canceled) {
			t.Errorf("the error is %v, but the context was not cancelled", err)
		}
		close(proceed)
		must.Report(t, <-closed)
	}
}

// Another client deletes the claim of the last delivery, and another consumer then moves the
// element to the dead letters. The Return that comes too late fails.
func TestALastReturnThatComesTooLateSaysSo(t *testing.T) {
	srv, ctx := zktest.Embedded(t), zktest.Bounded(t)
	cfg := recipes.QueueConfig{MaxDeliveries: 1}
	q, other := zktest.QueueOf(t, zktest.Open(t, srv), "/q", cfg), zktest.QueueOf(t, zktest.Open(t, srv), "/q", cfg)
	for range 2 {
		must.Get(q.Put(ctx, nil))(t)
	}
	d := must.Get(q.Receive(ctx))(t)
	raw := zktest.Raw(t, srv.Addr())
	must.Do(t, raw.Delete(d.Znode(), -1))
	must.Get(other.Take(ctx))(t) // takes the second element, and moves the first one to the dead letters
	if dead := must.Get(q.DeadLetters(ctx))(t); len(dead) != 1 {
		t.Fatalf("dead letters %v", dead)
	}
	if err := d.Return(ctx); !errors.Is(err, recipes.ErrRemoved) {
		t.Errorf("Return: %v; want ErrRemoved", err)
	}
}

// A delivery that was lost was not given back by its consumer. Each call returns ErrRemoved.
func TestALostDeliveryIsNotReleased(t *testing.T) {
	zktest.OnVirtualTime(t, func(ctx context.Context, t *testing.T, _ *zkserver.Server, s recipes.Client) {
		q := zktest.QueueOf(t, s, "/q", recipes.QueueConfig{})
		must.Get(q.Put(ctx, nil))(t)
		d := must.Get(q.Receive(ctx))(t)
		must.Do(t, zktest.BarrierAt(t, s, d.Znode()).Remove(ctx))
		<-d.Done()
		for name, end := range map[string]func(context.Context) error{"Ack": d.Ack, "Return": d.Return} {
			if err := end(ctx); !errors.Is(err, recipes.ErrRemoved) || errors.Is(err, recipes.ErrReleased) {
				t.Errorf("%s: %v; want ErrRemoved", name, err)
			}
		}
	})
}

// A consumer has the last element of the shared listing, and gives up before it takes the
// element. A consumer that already waits gets the element, although the queue has not changed.
func TestTheLastListedElementIsFoundByAnother(t *testing.T) {
	zktest.OnVirtualTime(t, func(ctx context.Context, t *testing.T, srv *zkserver.Server, s recipes.Client) {
		q := zktest.QueueOf(t, s, "/q", recipes.QueueConfig{})
		id := must.Get(q.Put(ctx, nil))(t)
		synctest.Wait()
		impatient, giveUp := context.WithCancel(ctx)
		var once sync.Once
		proceed := make(chan struct{})
		srv.SetFault(func(r zkserver.Request) (f zkserver.Fault) {
			if r.Op == zkserver.OpGetData {
				once.Do(func() { f.Hold = proceed })
			}
			return f
		})
		type result struct {
			recipes.Element
			error
		}
		take := func(ctx context.Context) <-chan result {
			got := make(chan result, 1)
			go func() { e, err := q.Take(ctx); got <- result{e, err} }()
			synctest.Wait()
			return got
		}
		first, second := take(impatient), take(ctx)
		giveUp()
		if got := <-first; !errors.Is(got.error, context.Canceled) {
			t.Fatalf("the first got %v, %v", got.Element, got.error)
		}
		close(proceed)
		synctest.Wait()
		select {
		case got := <-second:
			if got.error != nil || got.ID != id {
				t.Errorf("the second got %v, %v", got.Element, got.error)
			}
		default:
			t.Error("the second waits")
		}
	})
}

// If the outcome of a Take is unknown, the error names the element that may be lost.
func TestATakeOfUnknownOutcomeNamesItsElement(t *testing.T) {
	srv, ctx := zktest.Embedded(t), zktest.Bounded(t)
	s := zktest.Open(t, srv)
	q := zktest.QueueOf(t, s, "/q", recipes.QueueConfig{})
	id := must.Get(q.Put(ctx, []byte("x")))(t)
	met := zktest.Between(srv, s, zktest.Op(zkserver.OpMulti), func() { srv.ExpireSession(s.ID()) })
	_, err := q.Take(ctx)
	if !met() || !errors.Is(err, recipes.ErrUnknownOutcome) {
		t.Fatalf("Take returned %v", err)
	}
	if want := string(id) + " may have been taken"; !strings.Contains(err.Error(), want) {
		t.Errorf("the error is %q; want one with %q", err, want)
	}
}
