//go:build unix

package host_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/host"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// lockAt returns a session's lock at a path.
func lockAt(t *testing.T, s recipes.Recipes, path string) recipes.Lock {
	t.Helper()
	return must.Get(s.Lock(path, recipes.LockConfig{}))(t)
}

// cutOff makes the server end the connection instead of carrying out the first transaction
// below a path. reached is closed when that has happened.
func (v *surviving) cutOff(below string) (reached <-chan struct{}) {
	at := make(chan struct{})
	var once sync.Once
	v.server.SetFault(func(r zkserver.Request) (f zkserver.Fault) {
		if r.Op == zkserver.OpMulti && strings.HasPrefix(r.Path, below) {
			once.Do(func() { f.CloseBefore = true; close(at) })
		}
		return f
	})
	return at
}

// TestCallsInFlightWhenAPluginDies: a release that was not carried out is repeated, and a
// write has an unknown outcome. Calls that begin without a plugin wait for the next one.
// TestDeathsOfAResumedPlugin covers acquisitions and releases that were carried out.
func TestCallsInFlightWhenAPluginDies(t *testing.T) {
	t.Parallel()
	v := survive(t)
	t.Run("Release", func(t *testing.T) {
		v := v.in(t)
		h := v.holds("/l")
		reached := v.cutOff("/l/lock-")
		released := begin(func() error { return h.Release(ctx(t)) })
		closes(t, "the point", reached)
		v.kill()
		must.Report(t, <-released)
		v.nothingLeft("/l")
	})
	t.Run("Write", func(t *testing.T) {
		v := v.in(t)
		h := v.holds("/l")
		reached := v.unanswered(func(r zkserver.Request) bool {
			return r.Op == zkserver.OpMulti && strings.HasPrefix(r.Path, "/l/lock-")
		})
		written := begin(func() error { return h.Write(ctx(t), recipes.Create("/written", nil)) })
		closes(t, "the point", reached)
		v.exists("/written")
		v.kill()
		if err := <-written; !errors.Is(err, recipes.ErrUnknownOutcome) || errors.Is(err, recipes.ErrSessionLost) {
			t.Errorf("a write that was not answered: %v", err)
		}
		if err := h.Write(ctx(t), recipes.Create("/written", nil)); !errors.Is(err, recipes.ErrNodeExists) {
			t.Errorf("after that: %v", err)
		}
		must.Do(t, h.Release(ctx(t)))
	})
	t.Run("without a plugin", func(t *testing.T) {
		v := v.in(t)
		h, other := v.holds("/l"), v.holds("/other")
		v.suspend()
		canceled, cancel := context.WithCancel(ctx(t))
		cancel()
		if err := h.Write(canceled, recipes.Create("/never", nil)); !errors.Is(err, context.Canceled) || errors.Is(err, recipes.ErrUnknownOutcome) {
			t.Errorf("a cancelled write: %v", err)
		}
		written := begin(func() error { return h.Write(ctx(t), recipes.Create("/waited", nil)) })
		released := begin(func() error { return other.Release(ctx(t)) })
		listed := begin(func() error { _, err := v.session.Contenders(ctx(t), "/l"); return err })
		v.proceed()
		must.Report(t, errors.Join(<-written, <-released, <-listed))
		v.nothingLeft("/other")
		must.Do(t, h.Release(ctx(t)))
	})
	t.Run("Close", func(t *testing.T) { // last, because it closes the session
		v := v.in(t)
		v.holds("/l")
		v.suspend()
		closed := begin(func() error { return v.session.Close(ctx(t)) })
		v.proceed()
		must.Report(t, <-closed)
		v.nothingLeft("/l")
	})
}

// suspend kills the plugin, and delays the next one until proceed.
func (v *surviving) suspend() {
	v.Helper()
	v.hold.Lock()
	signal(v.T, v.supervisor.Plugin().PID(), syscall.SIGKILL)
	v.becomes(recipes.Suspended)
}

// exists waits until a znode exists.
func (v *surviving) exists(path string) {
	v.Helper()
	eventually(v, func() string { return unless(len(v.nodes(path)) > 0, "%s does not exist", path) })
}

func (v *surviving) proceed() { v.hold.Unlock() }

// TestARevocationWithoutAPlugin: another client requests the revocation while no plugin serves
// the session. The holder is notified by the next plugin.
func TestARevocationWithoutAPlugin(t *testing.T) {
	t.Parallel()
	v := survive(t)
	l, _ := v.session.SharedLock("/l", recipes.SharedLockConfig{Revocable: true})
	h := must.Get(l.AcquireWrite(ctx(t)))(t)
	revoked := h.Revoked()
	v.suspend()
	theirs, _ := v.rival.SharedLock("/l", recipes.SharedLockConfig{})
	must.Do(t, theirs.Revoke(ctx(t), h.Znode()))
	v.proceed()
	closes(t, "Revoked", revoked)
	must.Report(t, h.Release(ctx(t)))
}

// TestASessionIsLostAtItsDeadlineHoweverManyPluginsDie: no plugin lives for long enough to
// resume it. Its holds end before ZooKeeper grants them to another client.
func TestASessionIsLostAtItsDeadlineHoweverManyPluginsDie(t *testing.T) {
	t.Parallel()
	v := survive(t)
	short, lostFirst := v.holdsShortly("/l")
	// From now on the server answers no plugin that resumes the session.
	v.server.SetFault(func(r zkserver.Request) zkserver.Fault {
		return zkserver.Fault{CloseBefore: r.SessionID == short.ID()}
	})
	for end := false; !end; {
		if p := v.supervisor.Plugin(); p != nil {
			_ = syscall.Kill(p.PID(), syscall.SIGKILL)
			closes(t, "Exited", p.Exited())
		}
		select {
		case <-short.Done():
			end = true
		case <-v.changes:
		case <-ctx(t).Done():
			t.Fatal("the session is not lost")
		}
	}
	if !errors.Is(short.Err(), recipes.ErrDeadline) {
		t.Error(short.Err())
	}
	lostFirst()
}

// TestAPluginThatReportsTheLossIsNotResumed: it got a SIGTERM and has closed its sessions.
// Their holds are free.
func TestAPluginThatReportsTheLossIsNotResumed(t *testing.T) {
	t.Parallel()
	v := survive(t)
	h := v.holds("/l")
	signal(t, v.supervisor.Plugin().PID(), syscall.SIGTERM)
	closes(t, "Done", h.Done())
	if err := v.session.Err(); !errors.Is(err, recipes.ErrPluginLost) {
		t.Error(err)
	}
	if _, err := lockAt(t, v.rival, "/l").Acquire(ctx(t)); err != nil {
		t.Error(err)
	}
}

// TestAPluginThatCannotResumeLosesItsSessionsAtOnce: SupervisorConfig.LoseSessions need not be
// set.
func TestAPluginThatCannotResumeLosesItsSessionsAtOnce(t *testing.T) {
	s := must.Get(host.Supervise(ctx(t), host.SupervisorConfig{Plugin: config(t, "plugin"), MinBackoff: time.Millisecond}))(t)
	defer s.Close(context.Background())
	h := acquire(t, supervised(t, s))
	crash(t, s.Plugin().PID())
	closes(t, "Done", h.Done())
	if !errors.Is(h.Err(), recipes.ErrPluginLost) {
		t.Error(h.Err())
	}
	acquire(t, supervised(t, s))
}

func TestASessionWithoutAPluginIsClosedWithItsSupervisor(t *testing.T) {
	t.Parallel()
	v := survive(t)
	h := v.holds("/l")
	p := v.supervisor.Plugin()
	v.suspend()
	closes(t, "Exited", p.Exited())
	closed := begin(func() error { return v.supervisor.Close(ctx(t)) })
	closes(t, "Done", h.Done())
	v.proceed()
	must.Report(t, <-closed)
	if !errors.Is(v.session.Err(), recipes.ErrClosed) {
		t.Error(v.session.Err())
	}
}
