package session_test

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

func TestCloseConfirmsThoughTheConnectionIsDown(t *testing.T) {
	srv := embedded(t)
	s := open(t, to(srv))
	must.Get(s.CreateProtected(zktest.Bounded(t), "/x", "lock-", nil))(t)
	events := s.Events(t.Context())
	next(t, events)
	srv.RefuseConnections(true)
	srv.CloseAllConnections()
	if e := next(t, events); e.State != recipes.Suspended {
		t.Fatalf("event %v", e)
	}
	closed := make(chan error)
	go func() { closed <- s.Close(zktest.Bounded(t)) }()
	<-s.Done()
	// A later Close with a shorter context does not cut the first one short.
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Millisecond)
	defer cancel()
	if s.Close(ctx) == nil {
		t.Error("closed without a server")
	}
	srv.RefuseConnections(false)
	must.Do(t, <-closed)
	if ids := srv.Sessions(); len(ids) != 0 {
		t.Errorf("sessions at the server: %#x", ids)
	}
}

func TestCloseDoesNotWaitForAServerLongerThanItsContext(t *testing.T) {
	for unread := range 2 { // after this many requests, the server reads nothing
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
			first := s.Close(ctx)
			if !errors.Is(first, recipes.ErrUnknownOutcome) || !errors.Is(first, recipes.ErrClosed) {
				t.Fatalf("got %v", first)
			}
			if took := time.Since(began); took != patience+100*time.Millisecond {
				t.Errorf("after %d requests close took %v; it was given %v", unread, took, patience)
			}
			if err := s.Err(); !errors.Is(err, recipes.ErrClosed) {
				t.Fatalf("the session says %v", err)
			}
			for range 20 {
				if err := s.Close(ctx); err != first {
					t.Fatalf("a later call returned %v; the first %v", err, first)
				}
			}
		})
	}
}

// A context that has ended before is enough to close a session that is connected. Its locks are
// free at once.
func TestCloseWithAContextThatHasEnded(t *testing.T) {
	onVirtualTime(t, func(t *testing.T, srv *zkserver.Server, s *session.Session) {
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		must.Do(t, s.Close(ended))
		if left := srv.Sessions(); len(left) > 0 {
			t.Errorf("sessions at the server: %#x", left)
		}
	})
}

// Every call of Close returns the result of the first one. Only the first one sends
// closeSession, and it needs no other connection.
func TestCloseTwice(t *testing.T) {
	onVirtualTime(t, func(t *testing.T, srv *zkserver.Server, s *session.Session) {
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		srv.RefuseConnections(true)
		answers := make(chan error, 3)
		for range cap(answers) {
			go func() { answers <- s.Close(t.Context()) }()
		}
		for range cap(answers) {
			if err := <-answers; err != nil {
				t.Errorf("one of several at once: %v", err)
			}
		}
		for range 20 {
			if err := s.Close(ended); err != nil {
				t.Fatalf("later, with a context that has ended: %v", err)
			}
		}
		if n, left := srv.Counters().Requests[zkserver.OpCloseSession], srv.Sessions(); n != 1 || len(left) != 0 {
			t.Errorf("the server received %d closes; sessions %#x are left", n, left)
		}
		if err := s.Err(); !errors.Is(err, recipes.ErrClosed) || s.State() != recipes.Lost {
			t.Errorf("the session is %v, %v", s.State(), err)
		}
	})
}

// Close of a suspended session waits until a server is reached, until the session would have
// expired by itself, or until its context is done.
func TestCloseOfASuspendedSession(t *testing.T) {
	const timeout, cut = 20 * time.Second, 2 * time.Second // cut: since the last contact
	for name, test := range map[string]struct {
		back, patience time.Duration // 0: never, and without limit
		frozen         bool          // whether the servers accept connections but do not answer
		least, most    time.Duration // how long it takes
		want           error
	}{
		"no server comes back":                     {0, 0, false, timeout - cut, timeout - cut, recipes.ErrUnknownOutcome},
		"the context ends":                         {0, time.Second, false, time.Second, time.Second, recipes.ErrUnknownOutcome},
		"the context has ended":                    {0, -1, false, 0, 0, recipes.ErrUnknownOutcome},
		"a server comes back":                      {3 * time.Second, 0, false, 3 * time.Second, 4 * time.Second, nil},
		"no server answers":                        {0, 0, true, timeout - cut, timeout - cut, recipes.ErrUnknownOutcome},
		"no server answers until the context ends": {0, time.Second, true, time.Second, time.Second, recipes.ErrUnknownOutcome},
	} {
		t.Run(name, func(t *testing.T) {
			zktest.Bubble(t, func(t *testing.T) {
				srv := zkserver.New(zkserver.Config{})
				defer srv.Close()
				down := make(chan struct{}, 1) // full while no server can be reached
				dial := func(context.Context, string, string) (net.Conn, error) {
					if len(down) > 0 {
						return nil, errNoListener
					}
					return pipe(srv), nil
				}
				s := must.Get(session.Open(t.Context(), recipes.SessionConfig{Servers: []string{"server"}, SessionTimeout: timeout}, dial))(t)
				must.Get(s.Stat(t.Context(), "/"))(t)
				time.Sleep(cut)
				disconnected := must.Get(s.Connected(t.Context()))(t)
				if srv.Freeze(test.frozen); !test.frozen {
					down <- struct{}{}
				}
				srv.CloseConnection(s.ID())
				<-disconnected
				synctest.Wait()
				if s.State() != recipes.Suspended {
					t.Fatalf("the session is %v", s.State())
				}
				if test.back > 0 {
					time.AfterFunc(test.back, func() { <-down })
				}
				ctx := t.Context()
				if test.patience != 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, test.patience)
					defer cancel()
				}
				begun := time.Now()
				err := s.Close(ctx)
				took := time.Since(begun)
				if !errors.Is(err, test.want) || test.want != nil && !errors.Is(err, recipes.ErrClosed) {
					t.Errorf("got %v; want %v", err, test.want)
				}
				if took < test.least || took > test.most {
					t.Errorf("it took %v; want %v to %v", took, test.least, test.most)
				}
				srv.Freeze(false)
				// If the server could expire the session by itself, it does so by this time.
				if left := len(srv.Sessions()); test.back+test.patience != 0 && (left == 0) != (test.want == nil) {
					t.Errorf("%d sessions are left at the server", left)
				}
				time.Sleep(2 * time.Second) // go-zookeeper's Close waits for one
			})
		})
	}
}
