package link_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	rpcwire "github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	"github.com/zkrecipes/zkrecipes/internal/testing/fake"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// Close returns the plugin's answer even if the caller's deadline has passed.
func TestCloseReturnsThePluginsAnswer(t *testing.T) {
	spy := newSpy()
	s := newLink(t, spy.option()).open(t, 0)
	c, cancel := context.WithCancel(ctx(t))
	spy.answer("Close", func() error {
		cancel()
		return rpcwire.ToStatus(recipes.ErrAuthFailed, nil)
	})
	matches(t, s.Close(c), recipes.ErrUnknownOutcome, recipes.ErrAuthFailed)
}

// The test freezes the connection between host and plugin, as SIGSTOP of one of them does.
// The host must give up the session before the plugin, or ZooKeeper, can grant its locks to
// others.
func TestFrozenPluginLosesTheSessionInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const timeout = 500 * time.Millisecond
		l := newLink(t)
		s := l.open(t, timeout)
		h := acquire(t, s)
		l.wire.freeze()
		frozen := time.Now()
		closes(t, "hold", h.Done())
		matches(t, h.Err(), recipes.ErrDeadline, recipes.ErrNotHeld)
		if d := time.Since(frozen); d > timeout {
			t.Errorf("lost %v after the freeze; the session timeout is %v", d, timeout)
		}
		// The wire is frozen for the plugin too, which then considers its host
		// frozen and closes the session.
		closes(t, "the plugin's session", l.world.Session(0).Done())
		matches(t, l.world.Session(0).Err(), recipes.ErrClosed)
	})
}

// A server continues to answer the plugin, but the leader receives nothing.
func TestHostThatHoldsCountsFromWhatTheLeaderKnows(t *testing.T) {
	for _, phase := range []time.Duration{0, 70 * time.Millisecond, 490 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			const timeout = 500 * time.Millisecond
			l := newLink(t)
			s := l.open(t, timeout)
			time.Sleep(phase) // virtual
			cut := time.Now()
			l.world.Session(0).CutOffLeader()
			time.Sleep(timeout / 2)
			h := acquire(t, s)
			closes(t, "hold", h.Done())
			if d := time.Since(cut); d > timeout {
				t.Errorf("lost %v after the leader last received something", d)
			}
			matches(t, h.Err(), recipes.ErrDeadline)
		})
	}
	synctest.Test(t, func(t *testing.T) {
		const timeout = 500 * time.Millisecond
		l := newLink(t)
		s := l.open(t, timeout)
		l.world.Session(0).CutOffLeader()
		time.Sleep(10 * timeout)
		if err := s.Err(); err != nil {
			t.Errorf("a session that holds nothing is lost: %v", err)
		}
	})
}

// The host then sends heartbeats more often, and counts by the smaller timeout.
func TestASmallerTimeoutReachesTheHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const before, after = 40 * time.Second, 500 * time.Millisecond
		l := newLink(t)
		s := l.open(t, before)
		l.world.Session(0).SetTimeout(after)
		time.Sleep(before)
		if err := s.Err(); err != nil || s.Timeout() != after {
			t.Fatalf("timeout %v, %v", s.Timeout(), err)
		}
		suspended := time.Now()
		l.world.Session(0).Suspend()
		closes(t, "session", s.Done())
		if d := time.Since(suspended); d > after {
			t.Errorf("lost after %v", d)
		}
	})
}

// The host must lose what it holds before another client can be granted it.
func TestShutdownNotifiesTheHostBeforeItCloses(t *testing.T) {
	world := new(fake.World)
	release := make(chan struct{})
	world.OnClose = func(*fake.Session) { <-release }
	l := newLinkTo(t, world)
	h := acquire(t, l.open(t, 0))
	ended := make(chan error, 1)
	go func() { ended <- l.server.Close(ctx(t)) }()
	closes(t, "hold", h.Done())
	if len(world.Line("/l")) != 1 {
		t.Error("the lock was free before its holder knew")
	}
	close(release)
	must.Report(t, <-ended)
	matches(t, h.Err(), recipes.ErrPluginLost)
	_, err := l.client.Open(ctx(t), recipes.SessionConfig{Servers: []string{"fake"}})
	matches(t, err, recipes.ErrUnavailable)
}

// The first call waits for a frozen plugin. When it has returned, its result is that of all calls.
func TestASecondCloseEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLink(t)
		s := l.open(t, 0)
		l.wire.freeze()
		first := make(chan error, 1)
		go func() { first <- s.Close(ctx(t)) }()
		synctest.Wait()
		called := time.Now()
		c, cancel := context.WithTimeout(ctx(t), time.Second)
		defer cancel()
		matches(t, s.Close(c), recipes.ErrUnknownOutcome, context.DeadlineExceeded)
		if d := time.Since(called); d > time.Second {
			t.Errorf("it returned after %v", d)
		}
		l.wire.thaw()
		must.Report(t, <-first)
		must.Report(t, s.Close(c))
	})
}

func TestCloseDoesNotHangOnAFrozenPlugin(t *testing.T) {
	l := newLink(t)
	s := l.open(t, 0)
	l.wire.freeze()
	c, cancel := context.WithTimeout(ctx(t), 20*time.Millisecond)
	defer cancel()
	matches(t, s.Close(c), recipes.ErrUnknownOutcome, context.DeadlineExceeded)
	matches(t, s.Err(), recipes.ErrClosed)
	l.wire.thaw()
	// When the plugin runs again, it sees that the host has closed the stream.
	closes(t, "the plugin's session", l.world.Session(0).Done())
}
