package session_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

// TestWaitEndsWithAnyOfItsEvents tests each of several events, with two events and with more.
func TestWaitEndsWithAnyOfItsEvents(t *testing.T) {
	s := open(t, to(embedded(t)))
	for _, n := range []int{1, 2, 3, 5} {
		for i := range n {
			events := make([]<-chan struct{}, n) // the others are nil: they never happen
			happens := make(chan struct{})
			events[i] = happens
			if session.Happened(events[i]) {
				t.Errorf("event %d of %d has happened too early", i, n)
			}
			close(happens)
			if err := s.Wait(t.Context(), "waiting", events...); err != nil || !session.Happened(events[i]) {
				t.Errorf("event %d of %d: %v", i, n, err)
			}
		}
	}
}

func TestWaitEndsWithItsContextAndWithTheSession(t *testing.T) {
	s := open(t, to(embedded(t)))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Wait(ctx, "waiting for nothing", nil, nil); !errors.Is(err, context.Canceled) || !strings.HasPrefix(err.Error(), "waiting for nothing: ") {
		t.Errorf("with an ended context: %v", err)
	}
	must.Do(t, s.Close(t.Context()))
	for _, events := range [][]<-chan struct{}{nil, {nil, nil}} {
		if err := s.Wait(t.Context(), "waiting", events...); !errors.Is(err, recipes.ErrSessionLost) {
			t.Errorf("after the session's end: %v", err)
		}
	}
}
