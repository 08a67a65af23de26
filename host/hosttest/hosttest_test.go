package hosttest_test

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/host"
	"github.com/zkrecipes/zkrecipes/host/hosttest"
	"github.com/zkrecipes/zkrecipes/internal/testing/leaktest"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/watchdog"
	"github.com/zkrecipes/zkrecipes/recipes"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

func hold(t *testing.T, s recipes.Recipes) recipes.Hold {
	t.Helper()
	l := must.Get(s.Lock("/jobs/nightly", recipes.LockConfig{}))(t)
	return must.Get(l.Acquire(t.Context()))(t)
}

func TestSessionsOfOneWorldMeet(t *testing.T) {
	w := hosttest.New(t)
	h := hold(t, w.Open(t))
	l := must.Get(w.Open(t).Lock("/jobs/nightly", recipes.LockConfig{}))(t)
	if _, err := l.TryAcquire(t.Context()); !errors.Is(err, recipes.ErrContended) {
		t.Error(err)
	}
	if nodes := w.Nodes(); len(nodes) != 3 || nodes[0] != "/jobs" || !strings.HasSuffix(nodes[2], h.Znode()) {
		t.Error(nodes)
	}
}

func TestExpire(t *testing.T) {
	w := hosttest.New(t)
	s, other := w.Open(t), w.Open(t)
	h := hold(t, s)
	w.Expire(s)
	watchdog.Closes(t, "Done", h.Done())
	if !errors.Is(h.Err(), recipes.ErrExpired) {
		t.Error(h.Err())
	}
	if other.State() != recipes.Connected {
		t.Error("another session was lost, too")
	}
}

func TestDisconnectAndReconnect(t *testing.T) {
	w := hosttest.New(t)
	s := w.Open(t)
	h := hold(t, s)
	events := s.Events(t.Context())
	expect := func(want recipes.State) {
		t.Helper()
		for e := range events {
			if e.State == want {
				return
			}
		}
		t.Fatalf("no %v", want)
	}
	w.Disconnect()
	expect(recipes.Suspended)
	w.Reconnect()
	expect(recipes.Connected)
	if err := h.Write(t.Context()); err != nil {
		t.Errorf("the lock is no longer held: %v", err)
	}
}

func TestPluginProcessThatIsKilled(t *testing.T) {
	w := hosttest.NewProcess(t, host.Config{})
	h := hold(t, w.Open(t))
	p := must.Get(os.FindProcess(w.Plugin.PID()))(t)
	must.Do(t, p.Kill())
	watchdog.Closes(t, "Done", h.Done())
	if !errors.Is(h.Err(), recipes.ErrPluginLost) {
		t.Error(h.Err())
	}
	watchdog.Closes(t, "Exited", w.Plugin.Exited())
}

// TestCloseReportsThatZooKeeperHasNotConfirmed: plugin and host have closed the session, but
// its lock is not free in ZooKeeper yet.
func TestCloseReportsThatZooKeeperHasNotConfirmed(t *testing.T) {
	w := hosttest.New(t)
	cfg := w.Config()
	cfg.SessionTimeout = 4 * time.Second // bounds the attempts to close; must not pass before Close
	s := must.Get(w.Plugin.Open(t.Context(), cfg))(t)
	hold(t, s)
	w.Disconnect()
	if err := w.Plugin.Close(t.Context()); !errors.Is(err, recipes.ErrUnknownOutcome) {
		t.Errorf("Close returns %v, and leaves %q", err, w.Nodes())
	}
}
