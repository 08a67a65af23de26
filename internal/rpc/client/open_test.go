package client_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/fake"
	"github.com/zkrecipes/zkrecipes/recipes"
)

func TestOpenSaysWhatWentWrong(t *testing.T) {
	world := new(fake.World)
	world.OpenErr = func() error { return fmt.Errorf("%w: connection refused", recipes.ErrUnavailable) }
	l := newLinkTo(t, world)
	_, err := l.client.Open(ctx(t), recipes.SessionConfig{Servers: []string{"fake"}})
	matches(t, err, recipes.ErrUnavailable)
}

func TestOpenEndsWithItsContext(t *testing.T) {
	l := newLink(t)
	l.open(t, 0) // the connection stands
	l.wire.freeze()
	cancelled, cancel := context.WithCancel(ctx(t))
	time.AfterFunc(10*time.Millisecond, cancel)
	_, err := l.client.Open(cancelled, recipes.SessionConfig{Servers: []string{"fake"}})
	matches(t, err, context.Canceled)
	short, cancel := context.WithTimeout(ctx(t), 10*time.Millisecond)
	defer cancel()
	_, err = l.client.Open(short, recipes.SessionConfig{Servers: []string{"fake"}})
	matches(t, err, recipes.ErrUnavailable, context.DeadlineExceeded)
}

// TestOpenThatNobodyWaitsForLeavesNoSession cancels after the plugin has opened.
func TestOpenThatNobodyWaitsForLeavesNoSession(t *testing.T) {
	world := new(fake.World)
	c, cancel := context.WithCancel(ctx(t))
	world.OpenErr = func() error { cancel(); return nil }
	l := newLinkTo(t, world)
	s, err := l.client.Open(c, recipes.SessionConfig{Servers: []string{"fake"}, SessionTimeout: time.Minute})
	if err == nil {
		t.Fatalf("opened %v", s.ID())
	}
	matches(t, err, context.Canceled)
	l.eventually(t, "no session", func() bool {
		for _, opened := range world.Sessions() {
			if opened.Err() == nil {
				return false
			}
		}
		return true
	})
}

func TestConfigurationArrivesNormalized(t *testing.T) {
	l := newLink(t)
	_, err := l.client.Open(ctx(t), recipes.SessionConfig{
		Servers: []string{"host"}, Chroot: "/c",
		Digest: &recipes.Digest{User: "u", Password: "p"},
	})
	if err != nil {
		t.Fatal(err)
	}
	got := l.world.Configs()[0]
	if got.Servers[0] != "host:2181" || got.Chroot != "/c" || got.Digest.Password != "p" || got.SessionTimeout != recipes.DefaultSessionTimeout || got.Logger == nil {
		t.Errorf("%+v", got)
	}
}

// TestConfigurationThatCannotBeSentIsInvalid: it is not the plugin's fault, and
// to try again does not help.
func TestConfigurationThatCannotBeSentIsInvalid(t *testing.T) {
	l := newLink(t)
	_, err := l.client.Open(ctx(t), recipes.SessionConfig{
		Servers: []string{"host"}, Digest: &recipes.Digest{User: "u", Password: "caf\xe9"},
	})
	matches(t, err, recipes.ErrInvalid)
	for _, wrong := range []error{recipes.ErrUnavailable, recipes.ErrPluginLost} {
		if errors.Is(err, wrong) {
			t.Errorf("%v matches %q", err, wrong)
		}
	}
}
