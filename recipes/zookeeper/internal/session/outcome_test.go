package session

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/conn"
)

// unconnected is a session that has reached no server.
func unconnected(t *testing.T) *Session {
	t.Helper()
	s, err := prepare(recipes.SessionConfig{Servers: []string{"server"}}, nil, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Whoever may still find out what became of a write goes on. Others are told why not, once.
func TestWhyAnOutcomeStaysUnknown(t *testing.T) {
	alive := unconnected(t)
	over := unconnected(t)
	_ = over.Close(t.Context())
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	unknown := fmt.Errorf("set /x: %w", recipes.ErrUnknownOutcome)
	known := fmt.Errorf("set /x: %w", recipes.ErrNoNode)
	told := fmt.Errorf("%w: %w", unknown, context.Canceled)
	for name, test := range map[string]struct {
		s         *Session
		ctx       context.Context
		err       error
		unsettled bool
		added     error // nil: the error stays as it is
	}{
		"unknown":            {alive, t.Context(), unknown, true, nil},
		"unknown, ctx ended": {alive, ended, unknown, false, context.Canceled},
		"unknown, ctx ended, and the error says so":  {alive, ended, told, false, nil},
		"unknown, the session is over":               {over, t.Context(), unknown, false, recipes.ErrClosed},
		"unknown, the session is over and ctx ended": {over, ended, unknown, false, recipes.ErrClosed},
		"known":                      {alive, t.Context(), known, false, nil},
		"known, ctx ended":           {alive, ended, known, false, nil},
		"known, the session is over": {over, t.Context(), known, false, nil},
		"no error":                   {alive, t.Context(), nil, false, nil},
		"no error, ctx ended":        {alive, ended, nil, false, nil},
	} {
		if got := test.s.Unsettled(test.ctx, test.err); got != test.unsettled {
			t.Errorf("%s: it can be found out: %v", name, got)
		}
		got := test.s.Because(test.ctx, test.err)
		if test.added == nil && got != test.err {
			t.Errorf("%s: told %v", name, got)
		}
		if test.added != nil && (!errors.Is(got, recipes.ErrUnknownOutcome) || !errors.Is(got, test.added)) {
			t.Errorf("%s: told %v; want also %v", name, got, test.added)
		}
	}
}

// Without a connection nothing is sent, also to one that needs the identity. A session that
// is over connects to nobody. Neither leaves it locked.
func TestASessionThatHasReachedNobody(t *testing.T) {
	s := unconnected(t)
	if _, err := s.wire.Sender().Identified().Send(conn.Sync("/")); !errors.Is(err, conn.ErrNotSent) {
		t.Errorf("told %v", err)
	}
	_ = s.Close(t.Context())
	if err := s.connect(t.Context()); !errors.Is(err, recipes.ErrClosed) {
		t.Errorf("connecting, told %v", err)
	}
	if s.wire.Begun() || !s.mu.TryLock() {
		t.Error("it has connected, or stays locked")
	}
}
