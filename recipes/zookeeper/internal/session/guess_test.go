package session_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

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
