package link_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/rpc/client"
	rpcwire "github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// moving opens a session through a plugin. move kills that plugin and makes another one resume
// the session. The spy before sees the calls to the first plugin, the spy after those to the
// second.
func moving(t *testing.T) (s recipes.Client, before, after *spy, move func()) {
	t.Helper()
	byGRPC(t)
	zk := zktest.Embedded(t)
	first := zktest.LinkTo(zk.ServeConn)
	before, after = newSpy(), newSpy()
	from, to := newLinkOver(t, zookeeper.Dialer(first.Dial).Open, before.option()), newLinkOver(t, zookeeper.Open, after.option())
	ended := make(chan struct{})
	c := client.Unconnected()
	t.Cleanup(c.Close)
	c.Use(c.Connect(from.conn, nil, func(context.Context) bool { close(ended); return true }), true)
	s = must.Get(c.Open(ctx(t), recipes.SessionConfig{Servers: []string{zk.Addr()}}))(t)
	return s, before, after, func() {
		first.Cut()
		_ = from.wire.Close()
		closes(t, "the wait for the plugin's end", ended) // from now on calls wait for the next one
		c.Use(c.Connect(to.conn, nil, func(context.Context) bool { return false }), true)
	}
}

// A session with more grants than are resumed at a time keeps all of them.
func TestAllGrantsOfASessionAreResumed(t *testing.T) {
	t.Parallel() // the dead plugin takes a while to end
	s, _, _, move := moving(t)
	var holds []recipes.Hold
	for i := range 40 {
		l := must.Get(s.Lock(fmt.Sprintf("/lock-%d", i), recipes.LockConfig{}))(t)
		holds = append(holds, must.Get(l.Acquire(ctx(t)))(t))
	}
	move()
	for _, h := range holds {
		if err := h.Write(ctx(t)); err != nil {
			t.Errorf("%s: %v", h.Znode(), err)
		}
		if err := h.Release(ctx(t)); err != nil {
			t.Errorf("%s: %v", h.Znode(), err)
		}
	}
	nothingIsKept(t, s)
}

// The first answer to a resuming call, or to DropRest, decides.
func TestTheNextPluginsAnswerDecides(t *testing.T) {
	const again, lost, all = "it is asked again", "the hold is lost alone", "the session is lost"
	cutOff := status.Error(codes.Canceled, "cut off") // gRPC's own error: no plugin has answered
	for _, test := range []struct {
		call   string
		answer error
		want   string
	}{
		{"Acquire lock", recipes.ErrUnavailable, again},
		{"Acquire lock", recipes.ErrThrottled, again},
		{"Acquire lock", cutOff, again},
		{"Acquire lock", recipes.ErrNotHeld, lost},
		{"Acquire lock", recipes.ErrRemoved, lost},
		{"Acquire lock", recipes.ErrInternal, lost},
		{"DropRest", recipes.ErrUnavailable, again},
		{"DropRest", recipes.ErrThrottled, again},
		{"DropRest", recipes.ErrUnknownOutcome, again},
		{"DropRest", recipes.ErrInternal, all},
	} {
		t.Run(fmt.Sprint(test.call, " ", test.answer), func(t *testing.T) {
			t.Parallel()
			s, _, spy, move := moving(t)
			h := acquire(t, s)
			m := must.Get(must.Get(s.Group("/g", recipes.GroupConfig{}))(t).Join(ctx(t), nil))(t)
			spy.answer(test.call, func() error {
				if _, cut := status.FromError(test.answer); cut {
					return test.answer
				}
				return rpcwire.ToStatus(test.answer)
			})
			move()
			switch test.want {
			case again:
				must.Do(t, errors.Join(h.Write(ctx(t)), m.Write(ctx(t))))
				if n := spy.count(test.call); n != 2 {
					t.Errorf("it was called %d times", n)
				}
			case lost:
				closes(t, "hold", h.Done())
				matches(t, h.Err(), recipes.ErrNotHeld)
				if err := m.Write(ctx(t)); err != nil {
					t.Errorf("the other grant: %v", err)
				}
			case all:
				closes(t, "session", s.Done())
				matches(t, s.Err(), recipes.ErrPluginLost)
				matches(t, h.Err(), recipes.ErrNotHeld)
			}
		})
	}
}

// A plugin that is still running may be closing the session.
func TestASessionOutlivesOnlyAPluginThatHasDied(t *testing.T) {
	for name, died := range map[string]bool{"died": true, "lives": false} {
		t.Run(name, func(t *testing.T) {
			l := newLink(t)
			c := client.Unconnected()
			defer c.Close()
			c.Use(c.Connect(l.conn, nil, func(context.Context) bool { return died }), true)
			s := must.Get(c.Open(ctx(t), recipes.SessionConfig{Servers: []string{"server"}}))(t)
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

// A plugin that cannot resume would open another session. The host cannot detect the end of a
// plugin process that it has not launched, so it moves no session to such a plugin. A host attaches
// to one if ZKRECIPES_PLUGIN_REATTACH is set after its supervisor has started.
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
			first, second := newLink(t), newLink(t)
			c := client.Unconnected()
			defer c.Close()
			c.Use(c.Connect(first.conn, nil, died), true)
			s := must.Get(c.Open(ctx(t), recipes.SessionConfig{Servers: []string{"server"}}))(t)
			h := acquire(t, s)
			c.Use(c.Connect(second.conn, nil, test.ended), test.resumes)
			_ = first.wire.Close()
			closes(t, "hold", h.Done())
			matches(t, h.Err(), recipes.ErrPluginLost, recipes.ErrNotHeld)
		})
	}
}

func TestASessionIsClosedWhileNoPluginServesIt(t *testing.T) {
	l := newLink(t)
	c := client.Unconnected()
	defer c.Close()
	c.Use(c.Connect(l.conn, nil, func(context.Context) bool { return true }), true)
	s := must.Get(c.Open(ctx(t), recipes.SessionConfig{Servers: []string{"server"}}))(t)
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
