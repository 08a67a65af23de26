package queue_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/go-zookeeper/zk"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// An acknowledgement ends with its session. Its error says that the session was closed, and does
// not match context.Canceled.
func TestAnAcknowledgementThatEndsWithItsSessionIsNotCancelled(t *testing.T) {
	srv := zktest.Embedded(t)
	ctx := zktest.Bounded(t)
	put := must.Get(zktest.Open(t, srv).Queue("/q", recipes.QueueConfig{}))(t)
	for range 10 { // each run takes one of two code paths at random
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
		acked := zktest.GoDo(ctx, d.Ack)
		<-arrived
		closed := zktest.GoDo(ctx, s.Close)
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
		take := func(ctx context.Context) <-chan zktest.Outcome[recipes.Element] {
			defer synctest.Wait()
			return zktest.Go(ctx, q.Take)
		}
		first, second := take(impatient), take(ctx)
		giveUp()
		if got := <-first; !errors.Is(got.Err, context.Canceled) {
			t.Fatalf("the first got %v", got)
		}
		close(proceed)
		synctest.Wait()
		select {
		case got := <-second:
			if got.Err != nil || got.Got.ID != id {
				t.Errorf("the second got %v", got)
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

// The other library reads these names. Its elements and ours have one order.
func TestAQueueInTheDialectOfAnotherLibrary(t *testing.T) {
	for dialect, tt := range map[recipes.Dialect]struct{ theirs, ours string }{
		recipes.Curator: {"qn-", "qn-0000000001"},
		recipes.Kazoo:   {"entry-100-", "entry-100-0000000001"},
	} {
		zktest.OnBoth(t, func(s *zktest.Scene) {
			q := must.Get(s.Session().Queue(s.Path, recipes.QueueConfig{Dialect: dialect}))(s.T)
			s.Make(s.Path+"/"+tt.theirs, []byte("a"), zk.FlagSequence)
			if id := must.Get(q.Put(s.Ctx, []byte("b")))(s.T); string(id) != tt.ours {
				s.Errorf("put %s; want %s", id, tt.ours)
			}
			s.Make(s.Path+"/"+tt.theirs, []byte("c"), zk.FlagSequence)
			if n := must.Get(q.Len(s.Ctx))(s.T); n != 3 || len(s.Children(s.Path)) != n {
				s.Errorf("Len counts %d among %q", n, s.Children(s.Path))
			}
			taken := ""
			for range 3 {
				taken += string(must.Get(q.Take(s.Ctx))(s.T).Data)
			}
			if taken != "abc" {
				s.Errorf("took %q", taken)
			}
			_, err := q.Receive(s.Ctx)
			s.Is(err, recipes.ErrInvalid)
			// Curator creates the path as a container, which is deleted when it is empty.
			must.Do(s, s.Raw.Delete(s.Path, -1))
			must.Get(q.Put(s.Ctx, nil))(s.T)
			if n := must.Get(q.Len(s.Ctx))(s.T); n != 1 {
				s.Errorf("%d elements after the path was deleted and one was put", n)
			}
		})
	}
}
