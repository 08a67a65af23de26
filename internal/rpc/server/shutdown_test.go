package server_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/rpc/client"
	"github.com/zkrecipes/zkrecipes/internal/rpc/server"
	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// The host has not cancelled anything, and the error must show a supervisor that it can
// open the session in the next plugin.
func TestOpenThatTheEndOfThePluginInterrupts(t *testing.T) {
	opening := make(chan struct{})
	conn, s := serve(t, server.Config{Open: func(ctx context.Context, _ recipes.SessionConfig) (recipes.Client, error) {
		close(opening)
		<-ctx.Done()
		return nil, fmt.Errorf("open session: %w", ctx.Err())
	}})
	host := client.New(conn, nil)
	defer host.Close()
	closed := make(chan error, 1)
	go func() {
		<-opening
		closed <- s.Close(bounded(t))
	}()
	for _, when := range []string{"while it opens", "afterwards"} {
		_, err := host.Open(bounded(t), recipes.SessionConfig{Servers: []string{"server"}})
		if !errors.Is(err, recipes.ErrUnavailable) || !errors.Is(err, recipes.ErrPluginLost) || errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", when, err)
		}
	}
	must.Report(t, <-closed)
}

// The plugin stops while ZooKeeper answers.
func TestSessionThatOpensTooLateIsClosed(t *testing.T) {
	zk, dial := zktest.Piped(t)
	opening := make(chan struct{})
	conn, s := serve(t, server.Config{Open: func(ctx context.Context, cfg recipes.SessionConfig) (recipes.Client, error) {
		close(opening)
		<-ctx.Done()
		return dial.Open(context.WithoutCancel(ctx), cfg)
	}})
	host := client.New(conn, nil)
	defer host.Close()
	closed := make(chan error, 1)
	go func() {
		<-opening
		closed <- s.Close(bounded(t))
	}()
	opened, err := host.Open(bounded(t), recipes.SessionConfig{Servers: []string{"server"}})
	if err == nil { // Opened arrived before the loss
		<-opened.Done()
		err = opened.Err()
	}
	if !errors.Is(err, recipes.ErrPluginLost) {
		t.Error(err)
	}
	must.Report(t, <-closed)
	if open := zk.Sessions(); len(open) > 0 || s.Sessions() != 0 {
		t.Errorf("%d sessions are served, %#x are open", s.Sessions(), open)
	}
}

// unconfirmed is a session whose end ZooKeeper never confirms.
type unconfirmed struct{ recipes.Client }

func (u unconfirmed) Close(ctx context.Context) error {
	<-ctx.Done()
	_ = u.Client.Close(ctx)
	return fmt.Errorf("close session: %w", recipes.ErrUnknownOutcome)
}

// Close returns the unconfirmed end, even if the session's host has just closed the stream.
// An unconfirmed end before Close is not returned.
func TestUnconfirmedEndIsReturned(t *testing.T) {
	for _, test := range []struct {
		name          string
		hungUp, ended bool
	}{
		{name: "of one that is open"},
		{name: "of one that was hung up", hungUp: true},
		{name: "of one that has ended", hungUp: true, ended: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			zktest.Bubble(t, func(t *testing.T) { // on virtual time
				_, dial := zktest.Piped(t)
				conn, s := serve(t, server.Config{Open: func(ctx context.Context, cfg recipes.SessionConfig) (recipes.Client, error) {
					session, err := dial.Open(ctx, cfg)
					return unconfirmed{session}, err
				}})
				host := client.New(conn, nil)
				defer host.Close()
				must.Get(host.Open(bounded(t), recipes.SessionConfig{Servers: []string{"server"}, SessionTimeout: time.Minute}))(t)
				if test.hungUp {
					host.Close()
				}
				if test.ended {
					time.Sleep(time.Minute)
				}
				for range 2 {
					if err := s.Close(bounded(t)); errors.Is(err, recipes.ErrUnknownOutcome) == test.ended || test.ended && err != nil {
						t.Errorf("the plugin says %v", err)
					}
				}
			})
		})
	}
}

// panicking is a session whose events cannot be followed.
type panicking struct{ recipes.Client }

func (panicking) Notify(func(recipes.Event)) { panic("s3cret") }

// A panic while a session is opened ends neither the plugin nor its other sessions. That
// session is closed, because it has no stream that could end it.
func TestAPanicDuringOpenClosesTheSession(t *testing.T) {
	h := newRawHost(t, server.Config{})
	h.wrap = func(s recipes.Client) recipes.Client { return panicking{s} }
	_, err := h.try(h.ctx, nil)
	for err == nil { // Opened may arrive before
		_, err = h.stream.Recv()
	}
	if err, _ = wire.Error(err); !errors.Is(err, recipes.ErrInternal) {
		t.Error(err)
	}
	if open := h.zk.Sessions(); len(open) > 0 || h.server.Sessions() > 0 {
		t.Errorf("%d sessions are served, %#x are open", h.server.Sessions(), open)
	}
}
