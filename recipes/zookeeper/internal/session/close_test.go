package session_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

func TestCloseConfirmsThoughTheConnectionIsDown(t *testing.T) {
	srv := embedded(t)
	s := open(t, to(srv))
	if _, err := s.CreateProtected(bounded(t), "/x", "lock-", nil); err != nil {
		t.Fatal(err)
	}
	events := s.Events(t.Context())
	next(t, events)
	srv.RefuseConnections(true)
	srv.CloseAllConnections()
	if e := next(t, events); e.State != recipes.Suspended {
		t.Fatalf("event %v", e)
	}
	closed := make(chan error)
	go func() { closed <- s.Close(bounded(t)) }()
	<-s.Done()
	srv.RefuseConnections(false)
	if err := <-closed; err != nil {
		t.Fatal(err)
	}
	if ids := srv.Sessions(); len(ids) != 0 {
		t.Errorf("sessions at the server: %#x", ids)
	}
}

func TestCloseDoesNotWaitForAServerLongerThanItsContext(t *testing.T) {
	for unread := range 2 { // a request, behind which the server reads nothing
		onVirtualTime(t, func(t *testing.T, srv *zkserver.Server, s *session.Session) {
			time.Sleep(time.Second)
			cutAndWait(t, srv, s) // so that the connection is younger than the session
			srv.Freeze(true)
			defer srv.Freeze(false)
			for range unread {
				go s.Stat(t.Context(), "/")
				synctest.Wait()
			}
			const patience = 100 * time.Millisecond
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			began := time.Now()
			if err := s.Close(ctx); !errors.Is(err, recipes.ErrUnknownOutcome) {
				t.Fatalf("got %v", err)
			}
			if took := time.Since(began); took != patience {
				t.Errorf("after %d requests close took %v of the %v it was given", unread, took, patience)
			}
			if err := s.Err(); !errors.Is(err, recipes.ErrClosed) {
				t.Fatalf("the session says %v", err)
			}
		})
	}
}

// A later Close with less patience does not cut the first one short.
func TestTheFirstCloseDecidesHowLongItIsTried(t *testing.T) {
	srv := embedded(t)
	s := open(t, to(srv))
	events := s.Events(t.Context())
	next(t, events)
	srv.RefuseConnections(true)
	srv.CloseAllConnections()
	if e := next(t, events); e.State != recipes.Suspended {
		t.Fatalf("event %v", e)
	}
	first := make(chan error, 1)
	go func() { first <- s.Close(bounded(t)) }()
	<-s.Done()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Millisecond)
	defer cancel()
	for s.Close(ctx) == nil {
		t.Fatal("closed without a server")
	}
	srv.RefuseConnections(false)
	if err := <-first; err != nil {
		t.Fatal(err)
	}
}
