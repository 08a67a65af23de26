package session_test

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/testing/ensembletest"
	"github.com/zkrecipes/zkrecipes/internal/testing/leaktest"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/watchdog"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

func TestMain(m *testing.M) { leaktest.Main(ensembletest.Owner{Tests: m}) }

// bare creates a bare znode below dir.
func bare(t *testing.T, s *session.Session, dir string) session.BareZnode {
	t.Helper()
	znode, _, err := s.CreateBare(t.Context(), dir, "lock-", nil, false, s.EnsureQueuePath)
	must.Do(t, err)
	return znode
}

func embedded(t *testing.T) *zkserver.Server {
	t.Helper()
	srv := must.Get(zkserver.Listen(zkserver.Config{MinSessionTimeout: 100 * time.Millisecond, MaxSessionTimeout: time.Minute}))(t)
	t.Cleanup(func() { srv.Close() })
	return srv
}

func open(t *testing.T, cfg recipes.SessionConfig) *session.Session {
	t.Helper()
	s := must.Get(session.Open(zktest.Bounded(t), cfg, nil))(t)
	t.Cleanup(func() { closeNow(s) })
	return s
}

// onVirtualTime runs test in a bubble, with a session over a pipe to a server.
func onVirtualTime(t *testing.T, test func(t *testing.T, srv *zkserver.Server, s *session.Session)) {
	zktest.Bubble(t, func(t *testing.T) {
		srv := zkserver.New(zkserver.Config{})
		defer srv.Close()
		s := must.Get(session.Open(t.Context(), recipes.SessionConfig{Servers: []string{"server"}, MaxPacket: 64 << 10}, dialPipe(srv)))(t)
		defer closeNow(s)
		test(t, srv, s)
	})
}

// pipe returns a connection to srv that works in a bubble.
func pipe(srv *zkserver.Server) net.Conn {
	client, server := net.Pipe()
	go srv.ServeConn(server)
	return client
}

func dialPipe(srv *zkserver.Server) func(context.Context, string, string) (net.Conn, error) {
	return func(context.Context, string, string) (net.Conn, error) { return pipe(srv), nil }
}

// closeNow closes a session, and waits at most a second for the server.
func closeNow(s *session.Session) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second) // clean-up: the server may not answer
	defer cancel()
	s.Close(ctx)
}

func to(srv *zkserver.Server) recipes.SessionConfig {
	return recipes.SessionConfig{Servers: []string{srv.Addr()}}
}

func next(t *testing.T, events <-chan recipes.Event) recipes.Event {
	t.Helper()
	select {
	case e := <-events:
		return e
	case <-time.After(watchdog.Patience):
		t.Fatal("no event")
		panic("unreachable")
	}
}

func awaitLost(t *testing.T, s *session.Session) error {
	t.Helper()
	select {
	case <-s.Done():
		return s.Err()
	case <-time.After(watchdog.Patience):
		t.Fatal("the session is not lost")
		return nil
	}
}

// cutAndWait drops the session's connection and waits until it is back.
func cutAndWait(t *testing.T, srv *zkserver.Server, s *session.Session) {
	t.Helper()
	ctx := zktest.Bounded(t)
	gone := must.Get(s.Connected(ctx))(t)
	srv.CloseConnection(s.ID())
	<-gone
	must.Get(s.Connected(ctx))(t)
}
