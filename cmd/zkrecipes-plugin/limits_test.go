package main

import (
	"errors"
	"os"
	"testing"

	"github.com/zkrecipes/zkrecipes/host"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// The host passes the operator's arguments to the plugin.
func TestOperatorLimitsThePlugin(t *testing.T) {
	s, err := zkserver.Listen(zkserver.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	p, err := host.Launch(t.Context(), host.Config{
		Path: os.Args[0], Env: []string{mainEnv + "=1"}, Args: []string{"-max-sessions=1", "-max-holds=1"},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close(t.Context())
	cfg := recipes.SessionConfig{Servers: []string{s.Addr()}}
	session, err := p.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Open(t.Context(), cfg); !errors.Is(err, recipes.ErrLimit) {
		t.Errorf("a second session: %v", err)
	}
	for i, want := range []error{nil, recipes.ErrLimit} {
		l, err := session.Lock([]string{"/a", "/b"}[i], recipes.LockConfig{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := l.Acquire(t.Context()); !errors.Is(err, want) {
			t.Errorf("hold %d: %v; want %v", i+1, err, want)
		}
	}
}
