package session_test

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/ensemble"
	"github.com/zkrecipes/zkrecipes/internal/testing/ensembletest"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

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

// A client with TLS and a server without it, and the reverse.
func TestRefusalByTLSIsExplained(t *testing.T) {
	ca := newAuthority(t)
	t.Run("embedded", func(t *testing.T) {
		refusal(t, recipes.SessionConfig{Servers: []string{embedded(t).Addr()}, TLS: &recipes.TLS{CA: ca.PEM}},
			"probably the server speaks no TLS there")
	})
	t.Run("real", func(t *testing.T) {
		cert, key := ca.issue("zookeeper.test")
		files := map[string]string{}
		for name, content := range map[string][]byte{"cert": cert, "key": key, "ca": ca.PEM} {
			files[name] = filepath.Join(t.TempDir(), name)
			must.Do(t, os.WriteFile(files[name], content, 0o600))
		}
		cfg := ensembletest.Quick(1)
		cfg.TLS = &ensemble.TLSConfig{CertFile: files["cert"], KeyFile: files["key"], CAFile: files["ca"]}
		server := ensembletest.Start(t, cfg).Server(0)
		refusal(t, recipes.SessionConfig{Servers: []string{server.Addr()}, TLS: &recipes.TLS{CA: ca.PEM}},
			"probably the server speaks no TLS there")
		refusal(t, recipes.SessionConfig{Servers: []string{server.SecureAddr()}}, "does it speak TLS there?")
	})
}

// A server without a quorum closes the connection, even if it serves read-only clients.
func TestRefusalWithoutAQuorumIsExplained(t *testing.T) {
	cfg := ensembletest.Quick(3)
	cfg.SystemProperties = map[string]string{"readonlymode.enabled": "true"}
	e := ensembletest.Start(t, cfg)
	for _, other := range e.Servers()[1:] {
		must.Do(t, other.Kill())
	}
	alone := recipes.SessionConfig{Servers: []string{e.Server(0).Addr()}}
	refusal(t, alone, "has it no quorum, or is it read-only?")
	for ctx := bounded(t); word(e.Server(0).Addr(), "isro") != "ro"; {
		select {
		case <-time.After(20 * time.Millisecond): // another process, so it must be polled
		case <-ctx.Done():
			t.Fatal("the server is not read-only")
		}
	}
	refusal(t, alone, "has it no quorum, or is it read-only?")
}

// word returns a server's answer to a four-letter word, or "".
func word(addr, word string) string {
	c, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return ""
	}
	defer c.Close()
	if c.SetDeadline(time.Now().Add(time.Second)) != nil { // tried again by the caller
		return ""
	}
	if _, err := c.Write([]byte(word)); err != nil {
		return ""
	}
	answer, _ := io.ReadAll(c)
	return string(answer)
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
