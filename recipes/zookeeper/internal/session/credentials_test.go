package session_test

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/testing/ensembletest"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

// If go-zookeeper could not write the credentials on a new connection, it hung forever, and so did
// Close.
func TestCredentialsThatCannotBeWrittenAreGivenOnTheNextConnection(t *testing.T) {
	srv := embedded(t)
	cfg := to(srv)
	cfg.Digest = &recipes.Digest{User: "jane", Password: "secret"}
	var connections, failures atomic.Int32
	s, err := session.Open(bounded(t), cfg, func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := (&net.Dialer{}).DialContext(ctx, network, address)
		if err != nil || connections.Add(1) != 2 {
			return c, err
		}
		return &authless{c, &failures}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeNow(s) })
	srv.CloseConnection(s.ID())
	// Wait for the third connection: the second cannot be used.
	for connections.Load() < 3 {
		gone := must.Get(s.Connected(bounded(t)))(t)
		if connections.Load() < 2 {
			select {
			case <-gone:
			case <-s.Done():
				t.Fatal(s.Err())
			}
		}
	}
	must.Get(s.Children(bounded(t), "/"))(t)
	if failures.Load() != 1 {
		t.Fatalf("%d writes failed: the case was not met", failures.Load())
	}
	if err := s.Close(bounded(t)); err != nil {
		t.Error(err)
	}
}

// authless cannot write credentials.
type authless struct {
	net.Conn
	failures *atomic.Int32
}

func (c *authless) Write(frame []byte) (int, error) {
	if len(frame) >= 12 && zkserver.Op(int32(binary.BigEndian.Uint32(frame[8:]))) == zkserver.OpAuth {
		c.failures.Add(1)
		return 0, errors.New("not today")
	}
	return c.Conn.Write(frame)
}

func TestCredentialsAreGivenAgainAfterAReconnect(t *testing.T) {
	check := func(t *testing.T, cfg recipes.SessionConfig, cut func(s *session.Session)) {
		cfg.Digest = &recipes.Digest{User: "jane", Password: "secret"}
		cfg.ACL = []recipes.ACL{{Permissions: recipes.PermAll, Scheme: "auth"}}
		s, ctx := open(t, cfg), bounded(t)
		path := must.Get(s.CreateProtected(ctx, "/private", "lock-", nil))(t)
		cfg.Digest, cfg.ACL = nil, nil
		if _, err := open(t, cfg).Get(ctx, path); !errors.Is(err, recipes.ErrAccessDenied) {
			t.Fatalf("a stranger reads: %v", err)
		}
		cut(s)
		if _, err := s.Get(ctx, path); err != nil {
			t.Fatalf("after the reconnect: %v", err)
		}
	}
	t.Run("embedded", func(t *testing.T) {
		srv := embedded(t)
		check(t, to(srv), func(s *session.Session) { cutAndWait(t, srv, s) })
	})
	t.Run("real", func(t *testing.T) {
		check(t, recipes.SessionConfig{Servers: ensembletest.Shared(t).Addrs()}, func(*session.Session) {})
	})
}

// A server that refuses the credentials answers, and each handshake keeps the session alive at
// the server. The session must end nevertheless.
func TestRefusedCredentialsEndTheSession(t *testing.T) {
	srv := embedded(t)
	cfg := to(srv)
	cfg.Digest = &recipes.Digest{User: "jane", Password: "secret"}
	refusing := newRefuser(t, srv.Addr(), opAuth, errAuthFailed)
	cfg.Servers = []string{refusing.addr}
	s := open(t, cfg)
	refusing.refuse.Store(true)
	srv.CloseConnection(s.ID())
	if err := awaitLost(t, s); !errors.Is(err, recipes.ErrAuthFailed) {
		t.Fatalf("lost with %v", err)
	}
}

// go-zookeeper/zk#163: a failed re-authentication can wedge the connection.
func TestAFailedReauthenticationIsTriedAgainOrEndsTheSession(t *testing.T) {
	for _, times := range []int{1, 3, -1} {
		srv := embedded(t)
		cfg := to(srv)
		cfg.SessionTimeout = 2 * time.Second
		cfg.Digest = &recipes.Digest{User: "jane", Password: "secret"}
		s := open(t, cfg)
		left := times
		srv.SetFault(func(r zkserver.Request) zkserver.Fault {
			if r.Op != zkserver.OpAuth || left == 0 {
				return zkserver.Fault{}
			}
			left--
			return zkserver.Fault{CloseBefore: true}
		})
		srv.CloseConnection(s.ID())
		if times < 0 {
			if err := awaitLost(t, s); !errors.Is(err, recipes.ErrSessionLost) {
				t.Fatal(err)
			}
			continue
		}
		if _, err := s.Children(bounded(t), "/"); err != nil {
			t.Fatalf("after %d failures: %v", times, err)
		}
	}
}
