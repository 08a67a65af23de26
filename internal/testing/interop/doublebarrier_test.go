package interop_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/testing/ensembletest"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// besideEach runs a test of double barriers beside each library.
func besideEach(t *testing.T, test func(t *testing.T, library string)) {
	ensembletest.Require(t)
	for _, library := range []string{"curator", "kazoo"} {
		t.Run(library, func(t *testing.T) {
			t.Parallel()
			test(t, library)
		})
	}
}

// members watches the members at the path of the match.
func (m *match) members(s recipes.Recipes) <-chan []recipes.Member {
	m.t.Helper()
	g := must.Get(s.Group(m.path, recipes.GroupConfig{}))(m.t)
	return must.Get(g.Watch(m.t.Context()))(m.t)
}

// barrier returns our double barrier for two at the path of the match.
func (m *match) barrier(s recipes.Recipes, dialect recipes.Dialect) recipes.DoubleBarrier {
	m.t.Helper()
	return must.Get(s.DoubleBarrier(m.path, recipes.DoubleBarrierConfig{Size: 2, Dialect: dialect}))(m.t)
}

func awaitMembers(t *testing.T, members <-chan []recipes.Member, n int) {
	t.Helper()
	for now := range members {
		if len(now) >= n {
			return
		}
	}
	t.Fatal("the watch has ended")
}

// awaitPasses waits until a library has passed n times, and returns the broken rules.
func (m *match) awaitPasses(library string, n int) []string {
	m.t.Helper()
	for m.turnsOf(library) < n {
		select {
		case <-time.After(10 * time.Millisecond):
		case <-m.t.Context().Done():
			m.t.Fatalf("%s has not passed", library)
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stopped = true
	return m.broken
}

// TestRealDoubleBarriersAreRefused lets ours enter beside a member of the other library's
// double barrier. Ours must leave nothing that the other library would count as a member:
// the member passes only with another of its own library.
func TestRealDoubleBarriersAreRefused(t *testing.T) {
	besideEach(t, func(t *testing.T, library string) {
		m := newMatch(t, pair{})
		theirs := m.side(library, "barrier")
		s := m.open()
		members := m.members(s)
		m.startKilled(theirs)
		awaitMembers(t, members, 1)
		var got *recipes.ForeignError
		if _, err := m.barrier(s, "").Enter(t.Context(), nil); !errors.As(err, &got) || string(got.Dialect) != library {
			t.Errorf("got %v", err)
		}
		if m.turnsOf(library) > 0 {
			t.Errorf("%s has passed without another", library)
		}
		m.startKilled(theirs)
		if broken := m.awaitPasses(library, 2); len(broken) > 0 {
			t.Error(broken)
		}
	})
}

// TestRealDoubleBarriersThatComeLater lets ours wait before a member of the other library
// joins. The other library counts every child of the path, and may pass. Ours does not pass
// with it, and leaves.
func TestRealDoubleBarriersThatComeLater(t *testing.T) {
	besideEach(t, func(t *testing.T, library string) {
		m := newMatch(t, pair{})
		m.stopped = true
		theirs := m.side(library, "barrier")
		s := m.open()
		b := m.barrier(s, "")
		failed := make(chan error, 1)
		go func() {
			_, err := b.Enter(t.Context(), []byte("ours"))
			failed <- err
		}()
		members := m.members(s)
		awaitMembers(t, members, 1)
		m.startKilled(theirs)
		var got *recipes.ForeignError
		if err := <-failed; !errors.As(err, &got) || string(got.Dialect) != library {
			t.Errorf("got %v", err)
		}
		for now := range members {
			if !slices.ContainsFunc(now, func(m recipes.Member) bool { return string(m.Data) == "ours" }) {
				return
			}
		}
		t.Error("the znode of ours is left behind")
	})
}

// TestRealDoubleBarriersAndAReadyThatWasLeftBehind shows what a dialect cannot promise: a
// member of the other library passes alone if a ready znode was left behind. If ours comes
// first, it deletes that znode, and both pass together.
func TestRealDoubleBarriersAndAReadyThatWasLeftBehind(t *testing.T) {
	besideEach(t, func(t *testing.T, library string) {
		leaveReady := func() (*match, recipes.Client) {
			m := newMatch(t, pair{})
			s := m.open()
			must.Do(t, must.Get(s.Barrier(m.path+"/ready"))(t).Set(t.Context(), nil))
			return m, s
		}
		alone, _ := leaveReady()
		alone.startKilled(alone.side(library, "barrier"))
		if broken := alone.awaitPasses(library, 1); len(broken) != 1 {
			t.Errorf("%q; want that it has passed alone", broken)
		}
		together, s := leaveReady()
		b := together.barrier(s, recipes.Dialect(library))
		members := together.members(together.open())
		entered := make(chan error, 1)
		go func() {
			together.witness.mark("member")
			_, err := b.Enter(t.Context(), nil)
			entered <- err
		}()
		awaitMembers(t, members, 1)
		together.startKilled(together.side(library, "barrier"))
		if broken := together.awaitPasses(library, 1); len(broken) > 0 {
			t.Error(broken)
		}
		must.Report(t, <-entered)
	})
}
