package interop_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/testing/ensembletest"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// TestRealDoubleBarriersAreRefused has ours meet a member of each library's double barrier,
// and leave nothing that it could count: it passes with another of its own.
func TestRealDoubleBarriersAreRefused(t *testing.T) {
	ensembletest.Require(t)
	for _, library := range []string{"curator", "kazoo"} {
		t.Run(library, func(t *testing.T) {
			t.Parallel()
			m := newMatch(t, pair{})
			theirs := side{library, append(libraries[library](t), m.server, millis, "barrier", m.path, string(m.witness))}
			start := func() {
				p := m.start(theirs)
				t.Cleanup(func() { _ = p.cmd.Process.Kill(); <-p.exited })
			}
			s, err := zookeeper.Open(t.Context(), recipes.SessionConfig{Servers: []string{m.server}})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close(t.Context())
			g, err := s.Group(m.path, recipes.GroupConfig{})
			if err != nil {
				t.Fatal(err)
			}
			members, err := g.Watch(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			waiting := func(n int) {
				for now := range members {
					if len(now) >= n {
						return
					}
				}
				t.Fatal("the watch has ended")
			}
			start()
			waiting(1)
			b, err := s.DoubleBarrier(m.path, recipes.DoubleBarrierConfig{Size: 2})
			if err != nil {
				t.Fatal(err)
			}
			var got *recipes.ForeignError
			if _, err := b.Enter(t.Context(), nil); !errors.As(err, &got) || string(got.Dialect) != library {
				t.Errorf("got %v", err)
			}
			if m.turnsOf(library) > 0 {
				t.Errorf("%s has passed without another", library)
			}
			start()
			for m.turnsOf(library) < 2 {
				select {
				case <-members: // as when ready is made, or a member goes
				case <-time.After(10 * time.Millisecond):
				case <-t.Context().Done():
					t.Fatal("they have not passed together")
				}
			}
			m.mu.Lock()
			defer m.mu.Unlock()
			for _, b := range m.broken {
				t.Error(b)
			}
			m.stopped = true
		})
	}
}

// TestRealDoubleBarriersThatComeLater has ours wait before theirs comes. Theirs counts
// every child of the path, and may pass. Ours does not pass with it, and leaves.
func TestRealDoubleBarriersThatComeLater(t *testing.T) {
	ensembletest.Require(t)
	for _, library := range []string{"curator", "kazoo"} {
		t.Run(library, func(t *testing.T) {
			t.Parallel()
			m := newMatch(t, pair{})
			m.stopped = true
			command := libraries[library](t)
			s, err := zookeeper.Open(t.Context(), recipes.SessionConfig{Servers: []string{m.server}})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close(t.Context())
			b, err := s.DoubleBarrier(m.path, recipes.DoubleBarrierConfig{Size: 2})
			if err != nil {
				t.Fatal(err)
			}
			failed := make(chan error, 1)
			go func() {
				_, err := b.Enter(t.Context(), []byte("ours"))
				failed <- err
			}()
			g, err := s.Group(m.path, recipes.GroupConfig{})
			if err != nil {
				t.Fatal(err)
			}
			members, err := g.Watch(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for now := range members {
				if len(now) == 1 {
					break
				}
			}
			theirs := m.start(side{library, append(command, m.server, millis, "barrier", m.path, string(m.witness))})
			defer func() { _ = theirs.cmd.Process.Kill(); <-theirs.exited }()
			var got *recipes.ForeignError
			if err := <-failed; !errors.As(err, &got) || string(got.Dialect) != library {
				t.Errorf("got %v", err)
			}
			for now := range members {
				if !slices.ContainsFunc(now, func(m recipes.Member) bool { return string(m.Data) == "ours" }) {
					return
				}
			}
			t.Error("ours is left behind")
		})
	}
}

// TestRealDoubleBarriersAndAReadyThatWasLeftBehind shows what a dialect cannot promise: a
// member of theirs passes alone with a ready that is of nobody. When ours comes first it
// deletes that, and both pass together.
func TestRealDoubleBarriersAndAReadyThatWasLeftBehind(t *testing.T) {
	ensembletest.Require(t)
	for _, library := range []string{"curator", "kazoo"} {
		t.Run(library, func(t *testing.T) {
			t.Parallel()
			command := libraries[library](t)
			leftBehind := func() (*match, recipes.Client, func()) {
				m := newMatch(t, pair{})
				s, err := zookeeper.Open(t.Context(), recipes.SessionConfig{Servers: []string{m.server}})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = s.Close(context.Background()) })
				ready, err := s.Barrier(m.path + "/ready")
				if err == nil {
					err = ready.Set(t.Context(), nil)
				}
				if err != nil {
					t.Fatal(err)
				}
				return m, s, func() {
					p := m.start(side{library, append(command, m.server, millis, "barrier", m.path, string(m.witness))})
					t.Cleanup(func() { _ = p.cmd.Process.Kill(); <-p.exited })
				}
			}
			passes := func(m *match) []string {
				for m.turnsOf(library) == 0 {
					select {
					case <-time.After(10 * time.Millisecond):
					case <-t.Context().Done():
						t.Fatal("it has not passed")
					}
				}
				m.mu.Lock()
				defer m.mu.Unlock()
				m.stopped = true
				return m.broken
			}
			alone, _, start := leftBehind()
			start()
			if broken := passes(alone); len(broken) != 1 {
				t.Errorf("%q; want that it has passed alone", broken)
			}
			together, s, start := leftBehind()
			b, err := s.DoubleBarrier(together.path, recipes.DoubleBarrierConfig{Size: 2, Dialect: recipes.Dialect(library)})
			if err != nil {
				t.Fatal(err)
			}
			other, err := zookeeper.Open(t.Context(), recipes.SessionConfig{Servers: []string{together.server}})
			if err != nil {
				t.Fatal(err)
			}
			defer other.Close(t.Context())
			g, err := other.Group(together.path, recipes.GroupConfig{})
			if err != nil {
				t.Fatal(err)
			}
			members, err := g.Watch(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			entered := make(chan error, 1)
			go func() {
				together.witness.mark("member")
				_, err := b.Enter(t.Context(), nil)
				entered <- err
			}()
			for now := range members {
				if len(now) == 1 {
					break
				}
			}
			start()
			if broken := passes(together); len(broken) > 0 {
				t.Error(broken)
			}
			if err := <-entered; err != nil {
				t.Error(err)
			}
		})
	}
}
