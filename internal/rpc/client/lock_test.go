package client_test

import (
	"bytes"
	"context"
	"errors"
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
	l.inLine(t, 2)
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
	l.inLine(t, 0)
	for _, s := range []recipes.Client{a, b} {
		if err := s.Close(ctx(t)); err != nil {
			t.Error(err)
		}
	}
}

// inLine waits until n stand in line.
func (l *link) inLine(t *testing.T, n int) {
	t.Helper()
	l.eventually(t, "the line", func() bool { return len(l.world.Line("/l")) == n })
}

func TestContendersAreListedInOrder(t *testing.T) {
	l := newLink(t)
	s := l.open(t, 0)
	h, err := lock(t, s, recipes.LockConfig{Data: []byte("me")}).Acquire(ctx(t))
	if err != nil {
		t.Fatal(err)
	}
	line, err := lock(t, s, recipes.LockConfig{}).Contenders(ctx(t))
	if err != nil || len(line) != 1 {
		t.Fatalf("%v, %v", line, err)
	}
	c := line[0]
	if c.Znode != h.Znode() || c.Token != h.Token() || c.SessionID != s.ID() || !bytes.Equal(c.Data, []byte("me")) || c.Since.IsZero() {
		t.Errorf("%+v", c)
	}
}

func TestTryAcquireLeavesTheLineAndTellsThePlace(t *testing.T) {
	l := newLink(t)
	s := l.open(t, 0)
	acquire(t, s)
	var places []recipes.Place
	_, err := lock(t, s, recipes.LockConfig{Joined: func(p recipes.Place) { places = append(places, p) }}).TryAcquire(ctx(t))
	if !errors.Is(err, recipes.ErrContended) {
		t.Fatal(err)
	}
	if len(places) != 1 || places[0].Position != 1 || places[0].Znode == "" {
		t.Errorf("joined at %v", places)
	}
	l.inLine(t, 1)
}

func TestJoinedIsCalledOnceWhileWaiting(t *testing.T) {
	l := newLink(t)
	s := l.open(t, 0)
	h := acquire(t, s)
	places := make(chan recipes.Place, 5)
	got := make(chan error, 1)
	waiting := lock(t, s, recipes.LockConfig{Joined: func(p recipes.Place) { places <- p }})
	go func() { _, err := waiting.Acquire(ctx(t)); got <- err }()
	if p := <-places; p.Position != 1 {
		t.Errorf("joined at %v", p)
	}
	if err := h.Release(ctx(t)); err != nil {
		t.Fatal(err)
	}
	if err := <-got; err != nil {
		t.Fatal(err)
	}
	if len(places) != 0 {
		t.Errorf("called again with %v", <-places)
	}
}

func TestCancelledAcquireLeavesTheLine(t *testing.T) {
	l := newLink(t)
	s := l.open(t, 0)
	acquire(t, s)
	for _, deadline := range []bool{false, true} {
		c, cancel := context.WithCancel(ctx(t))
		want := context.Canceled
		if deadline {
			c, cancel = context.WithTimeout(ctx(t), 20_000_000)
			want = context.DeadlineExceeded
		}
		waiting := lock(t, s, recipes.LockConfig{Joined: func(recipes.Place) {
			if !deadline {
				cancel()
			}
		}})
		_, err := waiting.Acquire(c)
		cancel()
		if !errors.Is(err, want) {
			t.Errorf("%v; want %v", err, want)
		}
		l.inLine(t, 1)
	}
}

// TestGrantThatCrossesWithTheCancellationIsNotOrphaned loses the answer of a
// granted Acquire at the moment when the caller gives up.
func TestGrantThatCrossesWithTheCancellationIsNotOrphaned(t *testing.T) {
	spy := newSpy()
	l := newLink(t, spy.option())
	s := l.open(t, 0)
	c, cancel := context.WithCancel(ctx(t))
	granted := 0
	spy.loseAnswer("Acquire", func() { granted = len(l.world.Line("/l")); cancel() })
	_, err := lock(t, s, recipes.LockConfig{}).Acquire(c)
	if !errors.Is(err, context.Canceled) || granted != 1 {
		t.Fatalf("%v with %d granted", err, granted)
	}
	l.inLine(t, 0)
	if h := acquire(t, s); h.Err() != nil {
		t.Error(h.Err())
	}
}

func TestBadArgumentsAreRefusedWithoutACall(t *testing.T) {
	spy := newSpy()
	l := newLink(t, spy.option())
	s := l.open(t, 0)
	if _, err := s.Lock("no/slash", recipes.LockConfig{}); !errors.Is(err, recipes.ErrInvalid) {
		t.Error(err)
	}
	if _, err := s.Election("/e", recipes.ElectionConfig{Strategy: "bribe"}); !errors.Is(err, recipes.ErrInvalid) {
		t.Error(err)
	}
	if _, err := l.client.Open(ctx(t), recipes.SessionConfig{}); !errors.Is(err, recipes.ErrInvalid) {
		t.Error(err)
	}
	if err := acquire(t, s).Write(ctx(t), recipes.Create("/", nil)); !errors.Is(err, recipes.ErrInvalid) || spy.count("Write") != 0 {
		t.Error(err)
	}
}
