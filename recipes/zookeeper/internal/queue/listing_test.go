package queue

import (
	"context"
	"errors"
	"fmt"
	"net"
	"testing"
	"testing/synctest"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

func TestListingsAreKeptWithinBounds(t *testing.T) {
	qs := Of(nil)
	at := func(path string) *listing {
		q := must.Get(qs.queue(path, recipes.QueueConfig{}, false))(t)
		return q.listing
	}
	for i := range 3 * mostListings {
		path := fmt.Sprintf("/job/%d", i)
		if first := at(path); at(path) != first {
			t.Fatalf("two consumers of %s share no listing", path)
		}
	}
	if n := len(qs.listings); n > mostListings {
		t.Errorf("%d listings are kept; want at most %d", n, mostListings)
	}
}

// An element that another consumer claims while it is tried, before the event arrives, is tried again
// when its claim has ended. The claim may end before it is listed.
func TestABusyElementIsTriedAgain(t *testing.T) {
	for _, listed := range []bool{true, false} {
		q := &queue{priority: true, cfg: recipes.QueueConfig{Dialect: recipes.ZooKeeper}}
		l := q.newListing()
		l.claimed = make(map[string]queued)
		e := q.parse([]string{"queue-07-0000000003"})[0]
		l.isBusy(e)
		l.takeBack()
		if listed {
			l.reclaim([]string{"queue-07-0000000003-1"})
		}
		if got, ok := l.first(); ok {
			t.Errorf("%s is claimed, and tried again", got.Name)
		}
		l.reclaim(nil)
		if got, ok := l.first(); !ok || got != e {
			t.Errorf("with a claim that was listed (%v), %v is tried again: %v", listed, got, ok)
		}
	}
}

// After a listing has failed, the next consumer lists again, even if it has its turn before the
// first one has returned.
func TestAFailedListingIsRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zkserver.New(zkserver.Config{})
		defer srv.Close()
		s, err := session.Open(t.Context(), recipes.SessionConfig{Servers: []string{"server"}}, func(context.Context, string, string) (net.Conn, error) {
			client, server := net.Pipe()
			go srv.ServeConn(server)
			return client, nil
		})
		must.Do(t, err)
		defer s.Close(t.Context())
		q := must.Get(Of(s).queue("/q", recipes.QueueConfig{}, false))(t)
		if _, _, err := q.listing.next(t.Context(), 1, true); err != nil {
			t.Fatal(err)
		}
		gone, cancel := context.WithCancel(t.Context())
		held := make(chan struct{})
		srv.SetFault(func(zkserver.Request) zkserver.Fault {
			cancel()
			return zkserver.Fault{Hold: held}
		})
		q.listing.filled = false
		if _, _, err := q.listing.next(gone, 1, true); !errors.Is(err, context.Canceled) {
			t.Errorf("the listing that fails: %v", err)
		}
		srv.SetFault(nil)
		close(held)
		synctest.Wait()
		lists := srv.Counters().Requests[zkserver.OpGetChildren2]
		if _, _, err := q.listing.next(t.Context(), 1, true); err != nil || srv.Counters().Requests[zkserver.OpGetChildren2] == lists {
			t.Errorf("the next consumer: %v, from the old listing", err)
		}
	})
}
