package client_test

import (
	"context"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/rpc/client"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// A plugin that is still running may be closing the session.
func TestASessionOutlivesOnlyAPluginThatHasDied(t *testing.T) {
	for name, died := range map[string]bool{"died": true, "lives": false} {
		t.Run(name, func(t *testing.T) {
			l := newServed(t)
			c := client.Unconnected()
			defer c.Close()
			c.Use(c.Connect(l.conn, nil, func(context.Context) bool { return died }), true)
			s := must.Get(c.Open(ctx(t), recipes.SessionConfig{Servers: []string{"served"}}))(t)
			h := acquire(t, s)
			events := s.Events(ctx(t))
			<-events
			_ = l.wire.Close()
			if !died {
				closes(t, "hold", h.Done())
				matches(t, h.Err(), recipes.ErrPluginLost, recipes.ErrNotHeld)
				return
			}
			if e := <-events; e.State != recipes.Suspended {
				t.Fatalf("then %+v", e)
			}
			must.Report(t, h.Err())
			gone, cancel := context.WithCancel(ctx(t))
			cancel()
			_, err := lock(t, s, recipes.LockConfig{}).Acquire(gone)
			matches(t, err, context.Canceled)
			c.Fail(recipes.ErrClosed)
			closes(t, "hold", h.Done())
			matches(t, h.Err(), recipes.ErrClosed)
		})
	}
}

// A plugin that cannot resume would open another session. The host cannot tell when the process of a
// plugin that it has not launched has ended, so that plugin serves no session of another one. A host
// attaches to one if ZKRECIPES_PLUGIN_REATTACH is set after its supervisor has started.
func TestASessionIsNotMoved(t *testing.T) {
	died := func(context.Context) bool { return true }
	for to, test := range map[string]struct {
		ended   func(context.Context) bool
		resumes bool
	}{
		"to a plugin that cannot resume":    {died, false},
		"to a plugin that was not launched": {nil, true},
	} {
		t.Run(to, func(t *testing.T) {
			first, second := newServed(t), newServed(t)
			c := client.Unconnected()
			defer c.Close()
			c.Use(c.Connect(first.conn, nil, died), true)
			s := must.Get(c.Open(ctx(t), recipes.SessionConfig{Servers: []string{"served"}}))(t)
			h := acquire(t, s)
			c.Use(c.Connect(second.conn, nil, test.ended), test.resumes)
			_ = first.wire.Close()
			closes(t, "hold", h.Done())
			matches(t, h.Err(), recipes.ErrPluginLost, recipes.ErrNotHeld)
		})
	}
}

func TestASessionIsClosedWhileNoPluginServesIt(t *testing.T) {
	l := newServed(t)
	c := client.Unconnected()
	defer c.Close()
	c.Use(c.Connect(l.conn, nil, func(context.Context) bool { return true }), true)
	s := must.Get(c.Open(ctx(t), recipes.SessionConfig{Servers: []string{"served"}}))(t)
	events := s.Events(ctx(t))
	_ = l.wire.Close()
	for e := range events {
		if e.State == recipes.Suspended {
			break
		}
	}
	gone, cancel := context.WithCancel(ctx(t))
	cancel()
	matches(t, s.Close(gone), recipes.ErrUnknownOutcome)
	matches(t, s.Err(), recipes.ErrClosed)
}
