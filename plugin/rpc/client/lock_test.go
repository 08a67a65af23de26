package client_test

import (
	"testing"

	"github.com/zkrecipes/zkrecipes/recipes"
)

func TestLockIsAcquiredReleasedAndPassedOn(t *testing.T) {
	l := newLink(t)
	a, b := l.open(t, 0), l.open(t, 0)
	first := acquire(t, a)
	if first.Token() == 0 || first.Znode() == "" || first.Err() != nil {
		t.Fatalf("hold = %d %q %v", first.Token(), first.Znode(), first.Err())
	}
	second := make(chan recipes.Hold)
	go func() { second <- acquire(t, b) }()
	l.eventually(t, "two in line", func() bool { return len(l.world.Line("/l")) == 2 })
	if err := first.Release(ctx(t)); err != nil {
		t.Fatal(err)
	}
	h := <-second
	if h.Token() <= first.Token() {
		t.Errorf("token %d after %d", h.Token(), first.Token())
	}
	if err := h.Release(ctx(t)); err != nil {
		t.Fatal(err)
	}
	if line := l.world.Line("/l"); len(line) != 0 {
		t.Errorf("left in line: %v", line)
	}
	for _, s := range []recipes.Session{a, b} {
		if err := s.Close(ctx(t)); err != nil {
			t.Error(err)
		}
	}
}
