package server

import (
	"context"
	"testing"
)

// TestAbandonEndsACallThatIsNoClaim: also one that it has overtaken, and no other.
func TestAbandonEndsACallThatIsNoClaim(t *testing.T) {
	cs := newClaims(nil, 1)
	begin := func(id string) context.Context {
		ctx, end := cs.abandonable(t.Context(), id)
		t.Cleanup(end)
		return ctx
	}
	one, other, none := begin("one"), begin("other"), begin("")
	cs.abandon("one")
	cs.abandon("late")
	late := begin("late")
	for name, ctx := range map[string]context.Context{"the abandoned": one, "the late": late} {
		if ctx.Err() == nil {
			t.Errorf("%s call goes on", name)
		}
	}
	for name, ctx := range map[string]context.Context{"another": other, "without an id": none} {
		if ctx.Err() != nil {
			t.Errorf("%s: %v", name, ctx.Err())
		}
	}
}

// TestCallThatHasEndedIsForgotten: nothing is kept of it.
func TestCallThatHasEndedIsForgotten(t *testing.T) {
	cs := newClaims(nil, 1)
	_, end := cs.abandonable(t.Context(), "one")
	end()
	if len(cs.waits) > 0 {
		t.Errorf("%d are remembered", len(cs.waits))
	}
}
