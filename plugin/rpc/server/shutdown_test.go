package server_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/plugin/rpc/client"
	"github.com/zkrecipes/zkrecipes/plugin/rpc/fake"
	"github.com/zkrecipes/zkrecipes/recipes"
)

func bounded(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// TestOpenThatTheEndOfThePluginInterrupts: nobody has cancelled anything, and
// who keeps a plugin running has to know that the next one can be asked.
func TestOpenThatTheEndOfThePluginInterrupts(t *testing.T) {
	opening := make(chan struct{})
	conn, s := serveWith(t, func(ctx context.Context, _ recipes.Config) (recipes.Session, error) {
		close(opening)
		<-ctx.Done()
		return nil, fmt.Errorf("open session: %w", ctx.Err())
	})
	host := client.New(conn)
	defer host.Close()
	closed := make(chan error, 1)
	go func() {
		<-opening
		closed <- s.Close(bounded(t))
	}()
	for _, when := range []string{"while it opens", "afterwards"} {
		_, err := host.Open(bounded(t), recipes.Config{Servers: []string{"fake"}})
		if !errors.Is(err, recipes.ErrUnavailable) || !errors.Is(err, recipes.ErrPluginLost) || errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", when, err)
		}
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
}

// unconfirmed is a session whose end ZooKeeper does not confirm.
type unconfirmed struct {
	recipes.Session
	closed, past atomic.Bool
}

func (u *unconfirmed) Close(ctx context.Context) error {
	_ = u.Session.Close(ctx)
	u.closed.Store(true)
	return fmt.Errorf("close session: %w", recipes.ErrUnknownOutcome)
}

// Timeout has passed since Close, if it is past.
func (u *unconfirmed) Timeout() time.Duration {
	if u.closed.Load() && u.past.Load() {
		return 0
	}
	return u.Session.Timeout()
}

// TestEndThatZooKeeperDoesNotConfirmIsTold: to who closes the plugin, also where
// the host of the session hung up before; and no longer than until the session's
// timeout, when nothing can be left of it.
func TestEndThatZooKeeperDoesNotConfirmIsTold(t *testing.T) {
	for _, test := range []struct {
		name         string
		hungUp, past bool
	}{
		{name: "while it is open"},
		{name: "after it was hung up", hungUp: true},
		{name: "after its timeout", hungUp: true, past: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			world := fake.New()
			conn, s := serveWith(t, func(ctx context.Context, cfg recipes.Config) (recipes.Session, error) {
				session, err := world.Open(ctx, cfg)
				u := &unconfirmed{Session: session}
				u.past.Store(test.past)
				return u, err
			})
			host := client.New(conn)
			defer host.Close()
			if _, err := host.Open(bounded(t), recipes.Config{Servers: []string{"fake"}, SessionTimeout: time.Minute}); err != nil {
				t.Fatal(err)
			}
			if test.hungUp {
				host.Close()
			}
			for range 2 {
				if err := s.Close(bounded(t)); errors.Is(err, recipes.ErrUnknownOutcome) == test.past || test.past && err != nil {
					t.Errorf("the plugin says %v", err)
				}
			}
		})
	}
}
