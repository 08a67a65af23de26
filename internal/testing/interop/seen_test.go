package interop_test

import (
	"errors"
	"os"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/testing/ensembletest"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// TestRealContendersAreSeen lets ours contend with recipes of other libraries with which it
// shares no wait queue. Ours may be granted between two turns of theirs, until both have
// contenders at the path at the same time.
func TestRealContendersAreSeen(t *testing.T) {
	ensembletest.Require(t)
	mutex := recipes.ForeignError{Dialect: recipes.ZooKeeper, Recipe: "Lock"}
	for _, p := range []struct {
		library, theirs, ours string
		want                  recipes.ForeignError
		dialect               recipes.Dialect
	}{
		{"kazoo", "lock", "lock", recipes.ForeignError{Dialect: recipes.Kazoo, Recipe: "Lock"}, ""},
		{"kazoo", "election", "election", recipes.ForeignError{Dialect: recipes.Kazoo, Recipe: "Lock"}, ""},
		{"curator", "election", "election", recipes.ForeignError{Dialect: recipes.Curator, Recipe: "LeaderLatch"}, ""},
		{"curator", "rw", "rw", recipes.ForeignError{Dialect: recipes.Curator, Recipe: "InterProcessReadWriteLock"}, ""},
		{"curator", "semaphore", "semaphore", recipes.ForeignError{Dialect: recipes.Curator, Recipe: "InterProcessSemaphoreV2"}, ""},
		{"kazoo", "semaphore", "semaphore", recipes.ForeignError{Dialect: recipes.Kazoo, Recipe: "Semaphore"}, ""},
		{"curator", "selector", "election", mutex, ""},
		{"curator", "lock", "rw", mutex, ""},
		{"curator", "lock", "semaphore", mutex, recipes.Curator},
		{"curator", "election", "semaphore", recipes.ForeignError{Dialect: recipes.Curator, Recipe: "LeaderLatch"}, recipes.Curator},
		{"kazoo", "lock", "semaphore", recipes.ForeignError{Dialect: recipes.Kazoo, Recipe: "Lock"}, recipes.Curator},
		{"curator", "semaphore", "lock", recipes.ForeignError{Dialect: recipes.Curator, Recipe: "InterProcessSemaphoreV2"}, ""},
		{"curator", "semaphore", "semaphore", recipes.ForeignError{Dialect: recipes.Curator, Recipe: "InterProcessSemaphoreV2"}, recipes.Kazoo},
		{"kazoo", "semaphore", "election", recipes.ForeignError{Dialect: recipes.Kazoo, Recipe: "Semaphore"}, ""},
	} {
		t.Run(p.library+" "+p.theirs+" and "+string(p.dialect)+" "+p.ours, func(t *testing.T) {
			t.Parallel()
			m := newMatch(t, pair{})
			m.stopped = true
			start := func() *peer { return m.start(m.side(p.library, p.theirs)) }
			theirs := start()
			defer func() { _ = theirs.cmd.Process.Kill(); <-theirs.exited }()
			s := m.open()
			own := witness(t.TempDir()) // ours may be granted between two turns of theirs
			err := os.WriteFile(own.file("counter"), nil, 0o600)
			for starts := 1; err == nil; {
				select {
				case <-theirs.exited: // the peer's session was lost, on a busy machine
					if starts++; starts > 10 {
						t.Fatal("the other library's process has ended ten times")
					}
					theirs = start()
				default:
				}
				err = own.turn(t.Context(), s, p.dialect, p.ours, m.path)
			}
			if got, ok := errors.AsType[*recipes.ForeignError](err); !ok || got.Dialect != p.want.Dialect || got.Recipe != p.want.Recipe || got.Znode == "" {
				t.Errorf("got %v; want a %s %s", err, p.want.Dialect, p.want.Recipe)
			}
		})
	}
}
