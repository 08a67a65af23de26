package simulation

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// rawSession is a go-zookeeper client, as other libraries use it. After an expiry it opens another
// session. Only an event reports that.
type rawSession struct {
	recipes.Client // nil: the methods that it does not have
	*zk.Conn
	acl []zk.ACL

	closed atomic.Bool

	mu     sync.Mutex
	state  zk.State
	since  time.Time // when state was entered
	epochs int       // number of expired sessions
}

// Children is not zk.Conn's.
func (s *rawSession) Children(ctx context.Context, path string) ([]string, error) {
	return s.Client.Children(ctx, path)
}

func openRaw(ctx context.Context, h *host) (recipes.Client, error) {
	s := &rawSession{acl: zk.WorldACL(zk.PermAll)}
	conn, _, err := zk.Connect([]string{"127.0.0.1:2181"}, sessionTimeout, zk.WithLogInfo(false), zk.WithLogger(silent{}),
		zk.WithDialer(func(network, address string, _ time.Duration) (net.Conn, error) { return h.Dial(ctx, network, address) }),
		zk.WithEventCallback(s.event), zk.WithMaxBufferSize(8<<10), zk.WithMaxConnBufferSize(8<<10))
	if err != nil {
		return nil, err
	}
	s.Conn = conn
	context.AfterFunc(ctx, s.close)
	for conn.State() != zk.StateHasSession {
		if err := sleep(ctx, 20*time.Millisecond); err != nil {
			return nil, err
		}
	}
	return s, nil
}

type silent struct{}

func (silent) Printf(string, ...any) {}

func (s *rawSession) event(e zk.Event) {
	if e.Type != zk.EventSession {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state, s.since = e.State, time.Now()
	if e.State == zk.StateExpired {
		s.epochs++
	}
}

func (s *rawSession) now() (state zk.State, since time.Time, epochs int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state, s.since, s.epochs
}

func (s *rawSession) ID() int64            { return s.SessionID() }
func (s *rawSession) Err() error           { return nil }
func (s *rawSession) State() recipes.State { return recipes.Connected }

func (s *rawSession) Close(context.Context) error { s.close(); return nil }

// close closes the client once. A second Close would wait on a mutex for the first. Virtual time
// does not pass while a goroutine waits for a mutex.
func (s *rawSession) close() {
	if s.closed.CompareAndSwap(false, true) {
		s.Conn.Close()
	}
}

// failed reports whether an error leaves the outcome unknown.
func failed(err error) bool {
	return errors.Is(err, zk.ErrConnectionClosed) || errors.Is(err, zk.ErrSessionExpired) || errors.Is(err, zk.ErrNoServer) ||
		errors.Is(err, io.ErrClosedPipe) || errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) || errors.Is(err, os.ErrDeadlineExceeded)
}

// rawError wraps an error so that the harness expects it.
func rawError(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", recipes.ErrUnavailable, err)
}

// ensure creates a persistent znode, unless it exists.
func (s *rawSession) ensure(path string) error {
	_, err := s.Create(path, nil, 0, s.acl)
	if errors.Is(err, zk.ErrNodeExists) {
		return nil
	}
	return err
}

// rawGrant is the grant of a raw lock. holds reports whether its library still assumes that it
// holds.
type rawGrant struct {
	recipes.Grant // nil: the methods that it does not have
	session       *rawSession
	path          string
	token         recipes.Token
	holds         func() bool
}

func (g *rawGrant) Token() recipes.Token  { return g.token }
func (g *rawGrant) Znode() string         { return g.path }
func (g *rawGrant) ValidUntil() time.Time { return time.Time{} } // other libraries prove nothing

func (g *rawGrant) Err() error {
	if g.holds() {
		return nil
	}
	return recipes.ErrNotHeld
}

// Write writes without checking the grant.
func (g *rawGrant) Write(_ context.Context, ops ...recipes.Op) error {
	_, err := g.session.Create(ops[0].Path, nil, 0, g.session.acl)
	if errors.Is(err, zk.ErrNodeExists) {
		err = nil
	}
	return rawError(err)
}
