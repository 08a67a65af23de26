package main

import (
	"errors"
	"os"
	"testing"

	"github.com/zkrecipes/zkrecipes/host"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/watchdog"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// The host passes the operator's arguments to the plugin.
func TestOperatorLimitsThePlugin(t *testing.T) {
	s := must.Get(zkserver.Listen(zkserver.Config{}))(t)
	defer s.Close()
	p := must.Get(host.Launch(t.Context(), host.Config{
		Path: os.Args[0], Env: []string{mainEnv + "=1"}, Args: []string{"-max-sessions=1", "-max-holds=1"},
		StartTimeout: watchdog.Patience,
	}))(t)
	defer p.Close(t.Context())
	cfg := recipes.SessionConfig{Servers: []string{s.Addr()}}
	session := must.Get(p.Open(t.Context(), cfg))(t)
	if _, err := p.Open(t.Context(), cfg); !errors.Is(err, recipes.ErrLimit) {
		t.Errorf("a second session: %v", err)
	}
	for i, want := range []error{nil, recipes.ErrLimit} {
		l := must.Get(session.Lock([]string{"/a", "/b"}[i], recipes.LockConfig{}))(t)
		if _, err := l.Acquire(t.Context()); !errors.Is(err, want) {
			t.Errorf("hold %d: %v; want %v", i+1, err, want)
		}
	}
}
