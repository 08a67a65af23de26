package link_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	rpcwire "github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/recipes"
	"google.golang.org/grpc"
)

// matches reports an error that does not match all of wants.
func matches(t *testing.T, err error, wants ...error) {
	t.Helper()
	for _, want := range wants {
		if !errors.Is(err, want) {
			t.Errorf("%v does not match %q", err, want)
		}
	}
}

func otherLock(t *testing.T, s recipes.Recipes) recipes.Hold {
	t.Helper()
	l := must.Get(s.Lock("/other", recipes.LockConfig{}))(t)
	return must.Get(l.Acquire(ctx(t)))(t)
}

// The write is not sent again.
func TestWriteWhoseAnswerIsLostHasAnUnknownOutcome(t *testing.T) {
	spy := newSpy()
	l := newLink(t, spy.option())
	h := acquire(t, l.open(t, 0))
	c, cancel := context.WithCancel(ctx(t))
	spy.loseAnswer("Write", cancel)
	err := h.Write(c, recipes.Create("/d", nil))
	matches(t, err, recipes.ErrUnknownOutcome, context.Canceled)
	if errors.Is(err, recipes.ErrNotHeld) || spy.count("Write") != 1 {
		t.Errorf("%v after %d writes", err, spy.count("Write"))
	}
}

// The stream reports the loss before the call is answered. The loss does not contain the
// call's outcome.
func TestThePluginsOutcomeSurvivesTheSession(t *testing.T) {
	outcomes := []error{recipes.ErrUnknownOutcome, recipes.ErrNotHeld}
	for i, outcome := range outcomes {
		spy := newSpy()
		l := newLink(t, spy.option())
		s := l.open(t, 0)
		h := acquire(t, s)
		spy.answer("Write", func() error {
			l.zk.ExpireSession(s.ID())
			<-s.Done()
			return rpcwire.ToStatus(fmt.Errorf("write: %w: %w", outcome, recipes.ErrExpired))
		})
		err := h.Write(ctx(t))
		matches(t, err, outcome, recipes.ErrExpired)
		if other := outcomes[1-i]; errors.Is(err, other) {
			t.Errorf("%v matches %q", err, other)
		}
	}
}

// The test calls every method that the client can answer from the stream's messages.
func TestStreamedStateNeedsNoCall(t *testing.T) {
	spy := newSpy()
	l := newLink(t, spy.option())
	s := l.open(t, 0)
	h := acquire(t, s)
	before := spy.total()
	for range 100 {
		_, _, _, _ = s.ID(), s.Timeout(), s.State(), s.Err()
		_, _, _ = h.Token(), h.Znode(), h.Err()
		_ = s.Done()
	}
	if n := spy.total() - before; n != 0 {
		t.Errorf("%d calls", n)
	}
}

// The plugin remembers a limited number of ended grants.
func TestForgottenReleaseHasSucceeded(t *testing.T) {
	spy := newSpy()
	l := newLink(t, spy.option())
	s := l.open(t, 0)
	h := acquire(t, s)
	spy.loseAnswer("Release", func() { // and the call is repeated
		for range 1024 + 1 {
			must.Report(t, otherLock(t, s).Release(ctx(t)))
		}
	})
	must.Report(t, h.Release(ctx(t)))
}

// The call may not have arrived, and the other members would wait.
func TestLeaveThatIsNotAnsweredIsAbandoned(t *testing.T) {
	spy := newSpy()
	s := newLink(t, spy.option()).open(t, 0)
	b := must.Get(s.DoubleBarrier("/b", recipes.DoubleBarrierConfig{Size: 1}))(t)
	p := must.Get(b.Enter(ctx(t), nil))(t)
	abandoned := make(chan struct{})
	c, cancel := context.WithCancel(ctx(t))
	spy.loseAnswer("LeaveDoubleBarrier", cancel)
	spy.answer("Abandon", func() error { close(abandoned); return nil })
	if err := p.Leave(c); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	closes(t, "Abandon", abandoned)
}

// The plugin is asked to report the removal of a member even if the application never calls
// Done.
func TestAMemberIsAlwaysWatched(t *testing.T) {
	spy := newSpy()
	s := newLink(t, spy.option()).open(t, 0)
	b := must.Get(s.DoubleBarrier("/b", recipes.DoubleBarrierConfig{Size: 1}))(t)
	watched := make(chan struct{})
	spy.answer("Watch", func() error { close(watched); return nil })
	must.Get(b.Enter(ctx(t), nil))(t)
	closes(t, "Watch", watched)
}

// No other message reports the loss here, because the plugin refuses to watch.
func TestWaitForARevocationReportsTheLossOfTheHold(t *testing.T) {
	refused := map[string]error{"Watch": recipes.ErrUnsupported, "AwaitRevocation": recipes.ErrRemoved}
	s := newLink(t, grpc.WithUnaryInterceptor(func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		if err := refused[method[strings.LastIndexByte(method, '/')+1:]]; err != nil {
			return rpcwire.ToStatus(err)
		}
		return invoke(ctx, method, req, reply, cc, opts...)
	})).open(t, 0)
	h := acquireRead(t, s)
	revoked := h.Revoked()
	closes(t, "Done", h.Done())
	matches(t, h.Err(), recipes.ErrRemoved)
	select {
	case <-revoked:
		t.Error("the hold was revoked")
	default:
	}
}

// The wait ends even if the plugin does not answer.
func TestWaitForARevocationEndsWithTheHold(t *testing.T) {
	asked, ended := make(chan struct{}), make(chan struct{})
	s := newLink(t, grpc.WithUnaryInterceptor(func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		if !strings.HasSuffix(method, "/AwaitRevocation") {
			return invoke(ctx, method, req, reply, cc, opts...)
		}
		close(asked)
		<-ctx.Done()
		close(ended)
		return ctx.Err()
	})).open(t, 0)
	h := acquireRead(t, s)
	h.Revoked()
	closes(t, "the question", asked)
	must.Do(t, h.Release(ctx(t)))
	closes(t, "the wait", ended)
}

func acquireRead(t *testing.T, s recipes.Recipes) recipes.SharedHold {
	t.Helper()
	l := must.Get(s.SharedLock("/l", recipes.SharedLockConfig{Revocable: true}))(t)
	return must.Get(l.AcquireRead(ctx(t)))(t)
}

// inLine waits until the wait queue has n contenders.
func (l *link) inLine(t *testing.T, n int) {
	t.Helper()
	eventually(t, "the line", func() bool { return len(zktest.Layout(l.zk, "/l")) == n })
}

// The answer of a granted Acquire is lost at the moment when the caller stops waiting.
func TestGrantThatCrossesWithTheCancellationIsNotOrphaned(t *testing.T) {
	spy := newSpy()
	l := newLink(t, spy.option())
	s := l.open(t, 0)
	c, cancel := context.WithCancel(ctx(t))
	granted := 0
	spy.loseAnswer("Acquire lock", func() { granted = len(zktest.Layout(l.zk, "/l")); cancel() })
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
	spy.loseAnswer("Acquire lock", cancel)
	spy.loseAnswer("Abandon", func() { spy.answer("Abandon", func() error { close(answered); return nil }) })
	if _, err := lock(t, s, recipes.LockConfig{}).Acquire(c); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	closes(t, "the second answer", answered)
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
		for _, part := range []string{"4096", "plugin.Limits.Message", "raise it"} { // the value, the setting and what to do
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%v; want %q in it", err, part)
			}
		}
		if d := time.Since(asked); d != 0 {
			t.Errorf("the answer took %v", d)
		}
		acquire(t, s) // the refused call left nothing behind
	})
}
