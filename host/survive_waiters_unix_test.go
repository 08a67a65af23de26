//go:build unix

package host_test

import (
	"testing"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// TestJoinedMayAskWhileItsPluginDies: the question waits for the next plugin, and the next
// plugin does not wait for Joined.
func TestJoinedMayAskWhileItsPluginDies(t *testing.T) {
	v := survive(t)
	first, err := lockAt(t, v.rival, "/l").Acquire(ctx(t))
	if err != nil {
		t.Fatal(err)
	}
	joined, ask, answered := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	l, err := v.session.Lock("/l", recipes.LockConfig{Joined: func(recipes.Place) {
		close(joined)
		<-ask
		_, err := v.session.Contenders(ctx(t), "/l")
		answered <- err
	}})
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan error, 1)
	go func() { _, err := l.Acquire(ctx(t)); got <- err }()
	closes(t, "joined", joined)
	before := ephemerals(v.server, "/l")
	v.suspend()
	close(ask)
	v.goOn()
	if err := <-answered; err != nil {
		t.Error(err)
	}
	if after := ephemerals(v.server, "/l"); len(after) != 2 || after[1] != before[1] {
		t.Errorf("in line %q, then %q", before, after)
	}
	if err := first.Release(ctx(t)); err != nil {
		t.Error(err)
	}
	if err := <-got; err != nil {
		t.Error(err)
	}
}

// TestAWaiterThatCannotBeTakenUpWaitsAtTheEnd: a contender of a recipe that cannot be taken
// up gets another place, and is granted in its turn.
func TestAWaiterThatCannotBeTakenUpWaitsAtTheEnd(t *testing.T) {
	v := survive(t)
	acquire := func(s recipes.Session, joined func(recipes.Place)) (recipes.Hold, error) {
		m, err := s.Semaphore("/s", recipes.SemaphoreConfig{Permits: 1, Dialect: recipes.Curator, Joined: joined})
		if err != nil {
			return nil, err
		}
		return m.Acquire(ctx(t))
	}
	first, err := acquire(v.rival, nil)
	if err != nil {
		t.Fatal(err)
	}
	joined, got := make(chan struct{}), make(chan error, 1)
	go func() {
		h, err := acquire(v.session, func(recipes.Place) { close(joined) })
		if err == nil {
			err = h.Release(ctx(t))
		}
		got <- err
	}()
	closes(t, "joined", joined)
	v.kill()
	v.kill()
	if err := first.Release(ctx(t)); err != nil {
		t.Error(err)
	}
	if err := <-got; err != nil {
		t.Error(err)
	}
	if left := ephemerals(v.server, "/s"); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}
