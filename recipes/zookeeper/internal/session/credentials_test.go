package session_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/testing/ensembletest"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

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

// refusal opens a session until an attempt fails with text.
func refusal(t *testing.T, cfg recipes.SessionConfig, text string) {
	t.Helper()
	said := "nothing"
	for ctx, step := bounded(t), 250*time.Millisecond; ctx.Err() == nil; step *= 2 { // a busy machine needs more
		short, cancel := context.WithTimeout(ctx, step)
		s, err := session.Open(short, cfg, nil)
		cancel()
		if err == nil {
			_ = s.Close(ctx)
			continue
		}
		if said = err.Error(); errors.Is(err, recipes.ErrUnavailable) && strings.Contains(said, text) {
			return
		}
	}
	t.Errorf("got %s; want %q", said, text)
}

// A client with TLS and a server without it. TestTLSToARealServer has the reverse.
func TestRefusalByTLSIsExplained(t *testing.T) {
	refusal(t, recipes.SessionConfig{Servers: []string{embedded(t).Addr()}, TLS: &recipes.TLS{CA: newAuthority(t).PEM}},
		"probably the server speaks no TLS there")
}

// The error names the scheme that the server refuses.
func TestRefusedSchemeIsNamed(t *testing.T) {
	srv := must.Get(zkserver.Listen(zkserver.Config{DisableDigest: true}))(t)
	defer srv.Close()
	cfg := to(srv)
	cfg.Digest = &recipes.Digest{User: "jane", Password: "secret"}
	_, err := session.Open(bounded(t), cfg, nil)
	if !errors.Is(err, recipes.ErrAuthFailed) || !strings.Contains(err.Error(), "authenticate with digest: ") {
		t.Errorf("got %v", err)
	}
}
