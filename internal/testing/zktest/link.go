package zktest

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// Bubble runs a test on virtual time. The bubble lasts for the second that go-zookeeper's Close may
// wait for its answer, because a session that was detached or given up does not wait for that.
func Bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		t.Cleanup(func() { time.Sleep(2 * time.Second) })
		f(t)
	})
}

// OnVirtualTime runs a test in a bubble of virtual time, with a server and a session.
func OnVirtualTime(t *testing.T, f func(ctx context.Context, t *testing.T, srv *zkserver.Server, s recipes.Client)) {
	t.Helper()
	Bubble(t, func(t *testing.T) {
		srv := zkserver.New(zkserver.Config{})
		t.Cleanup(func() { srv.Close() })
		f(t.Context(), t, srv, OpenVirtual(t, srv))
	})
}

// Piped returns a server that has no socket, and connections to it. They work in a bubble too. The
// server accepts timeouts up to an hour, and is closed with the test.
func Piped(t testing.TB) (*zkserver.Server, zookeeper.Dialer) {
	t.Helper()
	srv := zkserver.New(zkserver.Config{MinSessionTimeout: 100 * time.Millisecond, MaxSessionTimeout: time.Hour})
	t.Cleanup(func() { must.Report(t, srv.Close()) })
	return srv, LinkTo(srv.ServeConn).Dial
}

// OpenVirtual opens a session in a bubble, which is closed with the test.
func OpenVirtual(t *testing.T, srv *zkserver.Server) recipes.Client {
	t.Helper()
	s, end := OpenIn(t, srv)
	t.Cleanup(end)
	return s
}

// OpenIn is [OpenVirtual] for a session that the test closes by end.
func OpenIn(t *testing.T, srv *zkserver.Server) (s recipes.Client, end func()) {
	t.Helper()
	s = LinkTo(srv.ServeConn).Open(t, 9*time.Second)
	return s, func() { s.Close(context.Background()) }
}

// Link connects sessions to a server or a follower, over pipes.
type Link struct {
	Dead atomic.Bool             // connections stay open and carry no bytes, as after a cable is pulled
	Deaf atomic.Bool             // connections carry requests, but no replies
	Wrap func(net.Conn) net.Conn // wraps the client's end of a connection; may be nil

	mu    sync.Mutex
	serve func(net.Conn)
	conns []net.Conn
}

// LinkTo returns a link whose connections are served by a function.
func LinkTo(serve func(net.Conn)) *Link { return &Link{serve: serve} }

// Lead changes which function serves the next connections. With nil, none can be opened.
func (l *Link) Lead(serve func(net.Conn)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.serve = serve
}

// Cut closes all connections, as the death of a process does. No more can be opened.
func (l *Link) Cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.serve = nil
	for _, c := range l.conns {
		_ = c.Close()
	}
}

// Dial is for zookeeper.Dialer.
func (l *Link) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	l.mu.Lock()
	serve := l.serve
	l.conns = append(l.conns, client)
	l.mu.Unlock()
	if serve == nil || l.Dead.Load() {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	go serve(server)
	var conn net.Conn = &cable{client, l}
	if l.Wrap != nil {
		conn = l.Wrap(conn)
	}
	return conn, nil
}

// Open opens a session over the link. The test closes it.
func (l *Link) Open(t *testing.T, timeout time.Duration) recipes.Client {
	t.Helper()
	cfg := config("server")
	cfg.SessionTimeout = timeout
	return must.Get(zookeeper.Dialer(l.Dial).Open(t.Context(), cfg))(t)
}

type cable struct {
	net.Conn
	link *Link
}

func (c *cable) Write(p []byte) (int, error) {
	if c.link.Dead.Load() {
		return len(p), nil
	}
	return c.Conn.Write(p)
}

func (c *cable) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	for err == nil && (c.link.Dead.Load() || c.link.Deaf.Load()) {
		n, err = c.Conn.Read(p)
	}
	return n, err
}
