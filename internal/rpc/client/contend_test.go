package client

import (
	"context"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// TestWaitThatHasEndedIsForgotten: nothing is kept of it.
func TestWaitThatHasEndedIsForgotten(t *testing.T) {
	s := &session{clock: newClock(time.Minute), over: t.Context(), joins: make(map[string]*joining)}
	_, _ = s.await(t.Context(), "it", func(recipes.Place) {}, func(context.Context, string) (answer, error) {
		if len(s.joins) != 1 {
			t.Error("the call waits for no place")
		}
		return nil, recipes.ErrContended
	})
	if len(s.joins) > 0 {
		t.Errorf("%d are remembered", len(s.joins))
	}
}
