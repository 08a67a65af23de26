package client_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// inLine waits until the wait queue has n contenders.
func (l *link) inLine(t *testing.T, n int) {
	t.Helper()
	l.eventually(t, "the line", func() bool { return len(l.world.Line("/l")) == n })
}

func TestTryAcquireLeavesTheQueueAndReportsThePlace(t *testing.T) {
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
	must.Do(t, h.Release(ctx(t)))
	must.Do(t, <-got)
	if len(places) != 0 {
		t.Errorf("called again with %v", <-places)
	}
}

// The answer of a granted Acquire is lost at the moment when the caller stops waiting.
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

// The test loses the answer of Abandon too.
func TestAbandonIsRepeatedUntilItIsAnswered(t *testing.T) {
	spy := newSpy()
	l := newLink(t, spy.option())
	s := l.open(t, 0)
	c, cancel := context.WithCancel(ctx(t))
	answered := make(chan struct{})
	spy.loseAnswer("Acquire", cancel)
	spy.loseAnswer("Abandon", func() { close(answered) })
	if _, err := lock(t, s, recipes.LockConfig{}).Acquire(c); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	closes(t, "the first answer", answered)
	l.inLine(t, 0)
	must.Report(t, s.Close(ctx(t)))
}

// gRPC refuses the message before it is read, so the stream has no reason for it. The time is
// virtual: it advances only if the call waits.
func TestMessageThatIsTooLargeIsAnsweredAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLink(t, grpc.WithDefaultCallOptions(grpc.MaxCallSendMsgSize(4<<10)))
		s := l.open(t, 0)
		asked := time.Now()
		_, err := lock(t, s, recipes.LockConfig{Data: make([]byte, 8<<10)}).Acquire(ctx(t))
		matches(t, err, recipes.ErrTooLarge)
		if d := time.Since(asked); d != 0 {
			t.Errorf("the answer took %v", d)
		}
		acquire(t, s) // the refused call left nothing behind
	})
}
