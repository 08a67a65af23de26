package server

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"testing"
)

// TestAbandonEndsACallThatIsNoClaim: also one that it has overtaken, and no other.
func TestAbandonEndsACallThatIsNoClaim(t *testing.T) {
	ts := newTickets(nil, 1)
	begin := func(id string) context.Context {
		ctx, end := ts.abandonable(t.Context(), id)
		t.Cleanup(end)
		return ctx
	}
	one, other, none := begin("one"), begin("other"), begin("")
	ts.abandon("one")
	ts.abandon("late")
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
	ts := newTickets(nil, 1)
	_, end := ts.abandonable(t.Context(), "one")
	end()
	if len(ts.waits) > 0 {
		t.Errorf("%d are remembered", len(ts.waits))
	}
}

// TestAbandonUndoesWhatHasSucceeded: once, also where it comes before the call knows
// that it has succeeded, and of the latest calls only.
func TestAbandonUndoesWhatHasSucceeded(t *testing.T) {
	ss := new(session)
	ts := newTickets(ss, 1)
	var mu sync.Mutex // tasks run beside each other
	undone := make(map[string]int)
	succeed := func(ctx context.Context, id string) {
		ts.undoable(ctx, id, func() {
			mu.Lock()
			defer mu.Unlock()
			undone[id]++
		})
	}
	ctx, end := ts.abandonable(t.Context(), "running")
	ts.abandon("running")
	succeed(ctx, "running")
	end()
	succeed(t.Context(), "answered")
	for range 2 {
		ts.abandon("answered")
		ss.tasks.Wait()
	}
	succeed(t.Context(), "")
	ts.abandon("")
	succeed(t.Context(), "oldest")
	for i := range remembered {
		succeed(t.Context(), fmt.Sprint(i))
	}
	ts.abandon("oldest")
	ts.abandon("0")
	ss.tasks.Wait()
	if want := map[string]int{"running": 1, "answered": 1, "0": 1}; !maps.Equal(undone, want) {
		t.Errorf("undone %v; want %v", undone, want)
	}
	if len(ts.undos) > remembered || len(ts.undoIDs) > remembered {
		t.Errorf("%d are remembered", len(ts.undos))
	}
}
