package link_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	rpcwire "github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// Close returns the plugin's answer even if the caller's deadline has passed.
func TestCloseReturnsThePluginsAnswer(t *testing.T) {
	spy := newSpy()
	s := newLink(t, spy.option()).open(t, 0)
	c, cancel := context.WithCancel(ctx(t))
	spy.answer("Close", func() error {
		cancel()
		return rpcwire.ToStatus(recipes.ErrAuthFailed)
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
		time.Sleep(timeout)
		synctest.Wait()
		if open := l.zk.Sessions(); len(open) > 0 {
			t.Errorf("the plugin serves session %#x", open)
		}
	})
}

// cutOff is a session whose server continues to answer, although the leader receives nothing.
type cutOff struct {
	recipes.Client
	at *atomic.Pointer[time.Time] // time of the cut; nil before it
}

func (c cutOff) LastContact() time.Time { return time.Now() }

func (c cutOff) KnownContact() time.Time {
	if at := c.at.Load(); at != nil {
		return *at
	}
	return time.Now()
}

// newCutOff returns a link whose sessions are cut off by cut.
func newCutOff(t *testing.T) (l *link, cut func()) {
	_, dial := zktest.Piped(t)
	at := new(atomic.Pointer[time.Time])
	return newLinkOver(t, func(ctx context.Context, cfg recipes.SessionConfig) (recipes.Client, error) {
		s, err := dial.Open(ctx, cfg)
		return cutOff{s, at}, err
	}), func() { at.Store(new(time.Now())) }
}

func TestHostThatHoldsCountsFromWhatTheLeaderKnows(t *testing.T) {
	for _, phase := range []time.Duration{0, 70 * time.Millisecond, 490 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			const timeout = 500 * time.Millisecond
			l, cut := newCutOff(t)
			s := l.open(t, timeout)
			time.Sleep(phase) // virtual
			cut()
			began := time.Now()
			time.Sleep(timeout / 2)
			h := acquire(t, s)
			closes(t, "hold", h.Done())
			if d := time.Since(began); d > timeout {
				t.Errorf("lost %v after the leader last received something", d)
			}
			matches(t, h.Err(), recipes.ErrDeadline)
		})
	}
	synctest.Test(t, func(t *testing.T) {
		const timeout = 500 * time.Millisecond
		l, cut := newCutOff(t)
		s := l.open(t, timeout)
		cut()
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
		l.zk.SetMaxSessionTimeout(after)
		l.zk.CloseConnection(s.ID())
		time.Sleep(before)
		if err := s.Err(); err != nil || s.Timeout() != after {
			t.Fatalf("timeout %v, %v", s.Timeout(), err)
		}
		frozen := time.Now()
		l.wire.freeze()
		closes(t, "session", s.Done())
		if d := time.Since(frozen); d > after {
			t.Errorf("lost after %v", d)
		}
	})
}

// The host must lose what it holds before another client can be granted it.
func TestShutdownNotifiesTheHostBeforeItCloses(t *testing.T) {
	l, release := newLink(t), make(chan struct{})
	l.zk.SetFault(func(r zkserver.Request) zkserver.Fault {
		if r.Op == zkserver.OpCloseSession {
			return zkserver.Fault{Hold: release}
		}
		return zkserver.Fault{}
	})
	h := acquire(t, l.open(t, 0))
	ended := make(chan error, 1)
	go func() { ended <- l.server.Close(ctx(t)) }()
	closes(t, "hold", h.Done())
	if len(zktest.Layout(l.zk, "/l")) != 1 {
		t.Error("the lock was free before its holder knew")
	}
	close(release)
	must.Report(t, <-ended)
	matches(t, h.Err(), recipes.ErrPluginLost)
	_, err := l.client.Open(ctx(t), recipes.SessionConfig{Servers: []string{"server"}})
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

// A context that has ended before is enough to close a session, as without a plugin.
func TestCloseWithAContextThatHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLink(t)
		s := l.open(t, 0)
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		must.Do(t, s.Close(ended))
		if open := l.zk.Sessions(); len(open) > 0 {
			t.Errorf("open: %#x", open)
		}
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
	eventually(t, "the plugin's session is open", func() bool { return len(l.zk.Sessions()) == 0 })
}
