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

// lockAt is the lock of a session at a path.
func lockAt(t *testing.T, s recipes.Recipes, path string) recipes.Lock {
	t.Helper()
	return must.Get(s.Lock(path, recipes.LockConfig{}))(t)
}

// cutOff has the server carry out nothing of the first transaction there, and end its
// connection. reached is closed when that has happened.
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

// TestCallsThatAreUnderWayWhenAPluginDies: a release that was not carried out is repeated,
// a write has an unknown outcome, and all that is begun without a plugin waits for the next.
// TestDeathsOfAResumedPlugin has an acquisition and a release that were carried out.
func TestCallsThatAreUnderWayWhenAPluginDies(t *testing.T) {
	t.Run("Release", func(t *testing.T) {
		v := survive(t)
		h := must.Get(lockAt(t, v.session, "/l").Acquire(ctx(t)))(t)
		reached := v.cutOff("/l/lock-")
		released := make(chan error, 1)
		go func() { released <- h.Release(ctx(t)) }()
		closes(t, "the point", reached)
		v.kill()
		must.Report(t, <-released)
		if there := ephemerals(v.server, "/l"); len(there) > 0 {
			t.Errorf("left: %q", there)
		}
	})
	t.Run("Write", func(t *testing.T) {
		v := survive(t)
		h := must.Get(lockAt(t, v.session, "/l").Acquire(ctx(t)))(t)
		reached := v.unheard(func(r zkserver.Request) bool {
			return r.Op == zkserver.OpMulti && strings.HasPrefix(r.Path, "/l/lock-")
		})
		written := make(chan error, 1)
		go func() { written <- h.Write(ctx(t), recipes.Create("/written", nil)) }()
		closes(t, "the point", reached)
		v.exists("/written")
		v.kill()
		if err := <-written; !errors.Is(err, recipes.ErrUnknownOutcome) || errors.Is(err, recipes.ErrSessionLost) {
			t.Errorf("a write that was not answered: %v", err)
		}
		if err := h.Write(ctx(t), recipes.Create("/written", nil)); !errors.Is(err, recipes.ErrNodeExists) {
			t.Errorf("after that: %v", err)
		}
	})
	t.Run("without a plugin", func(t *testing.T) {
		v := survive(t)
		h := must.Get(lockAt(t, v.session, "/l").Acquire(ctx(t)))(t)
		other := must.Get(lockAt(t, v.session, "/other").Acquire(ctx(t)))(t)
		v.suspend()
		canceled, cancel := context.WithCancel(ctx(t))
		cancel()
		if err := h.Write(canceled, recipes.Create("/never", nil)); !errors.Is(err, context.Canceled) || errors.Is(err, recipes.ErrUnknownOutcome) {
			t.Errorf("a write that was given up: %v", err)
		}
		written, released, asked := make(chan error, 1), make(chan error, 1), make(chan error, 1)
		go func() { written <- h.Write(ctx(t), recipes.Create("/written", nil)) }()
		go func() { released <- other.Release(ctx(t)) }()
		go func() { _, err := v.session.Contenders(ctx(t), "/l"); asked <- err }()
		v.goOn()
		must.Report(t, errors.Join(<-written, <-released, <-asked))
		if there := ephemerals(v.server, "/other"); len(there) > 0 {
			t.Errorf("left: %q", there)
		}
	})
	t.Run("Close", func(t *testing.T) {
		v := survive(t)
		must.Get(lockAt(t, v.session, "/l").Acquire(ctx(t)))(t)
		v.suspend()
		closed := make(chan error, 1)
		go func() { closed <- v.session.Close(ctx(t)) }()
		v.goOn()
		must.Report(t, <-closed)
		if there := ephemerals(v.server, "/l"); len(there) > 0 {
			t.Errorf("left: %q", there)
		}
	})
}

// suspend kills the plugin and keeps back the next one until goOn.
func (v *surviving) suspend() {
	v.Helper()
	v.hold.Lock()
	signal(v.T, v.supervisor.Plugin().PID(), syscall.SIGKILL)
	v.becomes(recipes.Suspended)
}

// exists waits until a znode exists.
func (v *surviving) exists(path string) {
	v.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		for _, n := range v.server.Tree() {
			if n.Path == path {
				return
			}
		}
		if time.Now().After(end) {
			v.Fatalf("%s does not exist", path)
		}
	}
}

func (v *surviving) goOn() { v.hold.Unlock() }

// TestARequestToGiveWayOutlivesThePlugin: it was asked for when nobody listened.
func TestARequestToGiveWayOutlivesThePlugin(t *testing.T) {
	v := survive(t)
	l, _ := v.session.SharedLock("/l", recipes.SharedLockConfig{Revocable: true})
	h := must.Get(l.AcquireWrite(ctx(t)))(t)
	revoked := h.Revoked()
	v.suspend()
	theirs, _ := v.rival.SharedLock("/l", recipes.SharedLockConfig{})
	must.Do(t, theirs.Revoke(ctx(t), h.Znode()))
	v.goOn()
	closes(t, "Revoked", revoked)
	must.Report(t, h.Release(ctx(t)))
}

// TestASessionIsLostAtItsDeadlineHoweverManyPluginsDie: no plugin lives for long enough to
// take it up. Its holds end before ZooKeeper gives them away.
func TestASessionIsLostAtItsDeadlineHoweverManyPluginsDie(t *testing.T) {
	t.Parallel()
	v := survive(t)
	short, h := v.holdsShortly("/l")
	told := make(chan time.Time, 1)
	go func() { <-h.Done(); told <- time.Now() }()
	granted := make(chan time.Time, 1)
	go func() {
		if _, err := lockAt(t, v.rival, "/l").Acquire(ctx(t)); err != nil {
			t.Error(err)
		}
		granted <- time.Now()
	}()
	// From now on the servers answer nobody who would resume.
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
	if a, b := <-told, <-granted; !a.Before(b) {
		t.Errorf("told %v after the next one was granted", a.Sub(b))
	}
}

// TestAPluginThatTellsTheLossIsNotResumed: a signal has ended it, and it has closed its
// sessions. What they held is free.
func TestAPluginThatTellsTheLossIsNotResumed(t *testing.T) {
	v := survive(t)
	h := must.Get(lockAt(t, v.session, "/l").Acquire(ctx(t)))(t)
	signal(t, v.supervisor.Plugin().PID(), syscall.SIGTERM)
	closes(t, "Done", h.Done())
	if err := v.session.Err(); !errors.Is(err, recipes.ErrPluginLost) {
		t.Error(err)
	}
	if _, err := lockAt(t, v.rival, "/l").Acquire(ctx(t)); err != nil {
		t.Error(err)
	}
}

// TestAPluginThatCannotResumeLosesItsSessionsAtOnce, as with SupervisorConfig.LoseSessions.
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

// TestASessionWithoutAPluginIsClosedWithItsSupervisor.
func TestASessionWithoutAPluginIsClosedWithItsSupervisor(t *testing.T) {
	v := survive(t)
	h := must.Get(lockAt(t, v.session, "/l").Acquire(ctx(t)))(t)
	p := v.supervisor.Plugin()
	v.suspend()
	closes(t, "Exited", p.Exited())
	closed := make(chan error, 1)
	go func() { closed <- v.supervisor.Close(ctx(t)) }()
	closes(t, "Done", h.Done())
	v.goOn()
	must.Report(t, <-closed)
	if !errors.Is(v.session.Err(), recipes.ErrClosed) {
		t.Error(v.session.Err())
	}
}
