//go:build unix

package host_test

import (
	"context"
	"errors"
	"slices"
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

// TestASessionIsClosedWithoutAPlugin: Close waits for the next plugin.
func TestASessionIsClosedWithoutAPlugin(t *testing.T) {
	t.Parallel()
	v := survive(t)
	v.holds("/l")
	v.suspend()
	closed := begin(func() error { return v.session.Close(ctx(t)) })
	v.proceed()
	must.Report(t, <-closed)
	v.nothingLeft("/l")
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
	eventually(v, func() string {
		found := slices.ContainsFunc(v.server.Tree(), func(n zkserver.Node) bool { return n.Path == path })
		return unless(found, "%s does not exist", path)
	})
}

func (v *surviving) proceed() { v.hold.Unlock() }

// TestASessionIsLostAtItsDeadlineHoweverManyPluginsDie: no plugin lives for long enough to
// resume it. Its holds end before ZooKeeper grants them to another client.
func TestASessionIsLostAtItsDeadlineHoweverManyPluginsDie(t *testing.T) {
	t.Parallel()
	v := survive(t)
	short, lostFirst := v.holdsShortly("/l")
	// From now on the server does not answer a plugin that resumes the session.
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

// TestAFrozenPluginIsNotReplaced: a frozen plugin could continue at any time. The host's clock
// ends its sessions before another client is granted their holds.
func TestAFrozenPluginIsNotReplaced(t *testing.T) {
	t.Parallel()
	v := survive(t)
	short, lostFirst := v.holdsShortly("/l")
	pid := v.supervisor.Plugin().PID()
	signal(t, pid, syscall.SIGSTOP)
	closes(t, "Done", short.Done())
	if !errors.Is(short.Err(), recipes.ErrDeadline) {
		t.Error(short.Err())
	}
	lostFirst()
	if p := v.supervisor.Plugin(); p == nil || p.PID() != pid || len(v.changes) > 0 {
		t.Error("it was replaced")
	}
	signal(t, pid, syscall.SIGKILL) // Close would wait for a frozen plugin
}
