package session_test

import (
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

// OnEnd calls its function once, before Close returns, or at once if the session has ended.
func TestOnEnd(t *testing.T) {
	cfg := recipes.SessionConfig{Servers: []string{zktest.Embedded(t).Addr()}}
	early, late := must.Get(session.Open(t.Context(), cfg, nil))(t), must.Get(session.Open(t.Context(), cfg, nil))(t)
	calls := 0
	early.OnEnd(func() { calls++ })
	if calls != 0 {
		t.Error("called while the session is open")
	}
	must.Do(t, early.Close(t.Context()))
	must.Do(t, early.Close(t.Context()))
	if calls != 1 {
		t.Errorf("%d calls at the end", calls)
	}
	must.Do(t, late.Close(t.Context()))
	late.OnEnd(func() { calls++ })
	if calls != 2 {
		t.Errorf("%d calls after the end", calls)
	}
}
