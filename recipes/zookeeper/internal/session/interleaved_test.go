package session_test

import (
	"errors"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// The path was deleted and created again, and the session has another bare znode of the same
// name.
func TestAnOlderPlaceOfTheSameName(t *testing.T) {
	srv, ctx := embedded(t), zktest.Bounded(t)
	s, other := open(t, to(srv)), open(t, to(srv))
	older := bare(t, s, "/line")
	for _, path := range []string{older.Path, "/line"} {
		must.Do(t, other.DeleteOnce(ctx, path, -1))
	}
	later, _, err := s.CreateBare(ctx, "/line", "lock-", nil, false, s.EnsureQueuePath)
	if err != nil || later.Path != older.Path {
		t.Fatalf("%+v, %v", later, err)
	}
	for name, deletion := range map[string]<-chan error{"DeleteBare": s.DeleteBare(older), "Handoff": s.Handoff(ctx, older)} {
		if err := <-deletion; !errors.Is(err, recipes.ErrNoNode) {
			t.Errorf("%s: %v", name, err)
		}
	}
	s.ForgetBare(older)
	watch := must.Get(s.BareW(ctx, older))(t)
	fired(t, watch)
	if stat, err := s.Stat(ctx, later.Path); err != nil || stat.Czxid != later.Stat.Czxid {
		t.Errorf("the later place: %+v, %v", stat, err)
	}
	must.Report(t, <-s.Handoff(ctx, later))
	if n := s.Places(); n != 0 {
		t.Errorf("%d places are remembered", n)
	}
}
