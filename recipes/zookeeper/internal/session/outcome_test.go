package session

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/conn"
)

// unconnected returns a session that has reached no server.
func unconnected(t *testing.T) *Session {
	t.Helper()
	s := must.Get(prepare(recipes.SessionConfig{Servers: []string{"server"}}, nil, time.Now()))(t)
	return s
}

// Unsettled is true while the outcome of a write can still be found out. Otherwise Because adds
// the reason, once.
func TestWhyAnOutcomeStaysUnknown(t *testing.T) {
	alive := unconnected(t)
	over := unconnected(t)
	_ = over.Close(t.Context())
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	unknown := fmt.Errorf("set /x: %w", recipes.ErrUnknownOutcome)
	known := fmt.Errorf("set /x: %w", recipes.ErrNoNode)
	complete := fmt.Errorf("%w: %w", unknown, context.Canceled)
	for name, test := range map[string]struct {
		s         *Session
		ctx       context.Context
		err       error
		unsettled bool
		added     error // nil: Because returns the error unchanged
	}{
		"unknown":            {alive, t.Context(), unknown, true, nil},
		"unknown, ctx ended": {alive, ended, unknown, false, context.Canceled},
		"unknown, ctx ended, and the error says so":  {alive, ended, complete, false, nil},
		"unknown, the session is over":               {over, t.Context(), unknown, false, recipes.ErrClosed},
		"unknown, the session is over and ctx ended": {over, ended, unknown, false, recipes.ErrClosed},
		"known":                      {alive, t.Context(), known, false, nil},
		"known, ctx ended":           {alive, ended, known, false, nil},
		"known, the session is over": {over, t.Context(), known, false, nil},
		"no error":                   {alive, t.Context(), nil, false, nil},
		"no error, ctx ended":        {alive, ended, nil, false, nil},
	} {
		if got := test.s.Unsettled(test.ctx, test.err); got != test.unsettled {
			t.Errorf("%s: Unsettled is %v", name, got)
		}
		got := test.s.Because(test.ctx, test.err)
		if test.added == nil && got != test.err {
			t.Errorf("%s: got %v", name, got)
		}
		if test.added != nil && (!errors.Is(got, recipes.ErrUnknownOutcome) || !errors.Is(got, test.added)) {
			t.Errorf("%s: got %v; want also %v", name, got, test.added)
		}
	}
}

// Without a connection nothing is sent, even with the identity. A session that has
// ended does not connect. Neither leaves the session locked.
func TestASessionThatHasReachedNoServer(t *testing.T) {
	s := unconnected(t)
	if _, err := s.wire.Current().Send(conn.Sync("/").Identified()); !errors.Is(err, conn.ErrNotSent) {
		t.Errorf("got %v", err)
	}
	_ = s.Close(t.Context())
	if err := s.connect(t.Context()); !errors.Is(err, recipes.ErrClosed) {
		t.Errorf("connecting: %v", err)
	}
	if s.wire.Begun() || !s.mu.TryLock() {
		t.Error("it has connected, or is still locked")
	}
}

// One call at a time creates a name. The next one starts when it has ended.
func TestOneCallAtATimeHasAName(t *testing.T) {
	var n names
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	release := must.Get(n.take(t.Context(), "/x"))(t)
	if _, err := n.take(ended, "/x"); !errors.Is(err, context.Canceled) {
		t.Errorf("a second call: %v", err)
	}
	must.Get(n.take(ended, "/y"))(t)()
	next := make(chan error, 1)
	go func() {
		release, err := n.take(t.Context(), "/x")
		if err == nil {
			release()
		}
		next <- err
	}()
	release()
	if err := <-next; err != nil || len(n.busy) != 0 {
		t.Errorf("%v; %d names are taken", err, len(n.busy))
	}
}

// The error of a creation that was not sent is that of its context, not an answer of a server.
func TestACreationThatWasNotSentIsNotAnswered(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	c := creation[string]{exchange: exchange{session: unconnected(t)}, path: "/x"}
	if _, err := c.run(ended, t.Context()); !errors.Is(err, recipes.ErrUnavailable) || !errors.Is(err, context.Canceled) || errors.Is(err, recipes.ErrInternal) {
		t.Error(err)
	}
}
