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
