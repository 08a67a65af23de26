//go:build unix

package host_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
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

// writeUnanswered makes a guarded write of h, whose lock is /l, and returns when the server has
// carried it out. The server withholds the replies of all guarded writes and releases at /l,
// and thus all later replies of the session, until answer is called.
func (v *surviving) writeUnanswered(h recipes.Hold, path string) (written <-chan error, answer func()) {
	v.Helper()
	at, later := make(chan struct{}), make(chan struct{})
	answer = sync.OnceFunc(func() { close(later) })
	v.Cleanup(answer)
	reach := sync.OnceFunc(func() { close(at) })
	id := v.session.ID()
	v.server.SetFault(func(r zkserver.Request) (f zkserver.Fault) {
		if r.SessionID == id && r.Op == zkserver.OpMulti && strings.HasPrefix(r.Path, "/l/lock-") {
			f.HoldReply = later
			reach()
		}
		return f
	})
	written = begin(func() error { return h.Write(ctx(v), recipes.Create(path, nil)) })
	closes(v, "the point", at)
	return written, answer
}

// upgrades begins an upgrade to a plugin.
func (v *surviving) upgrades(ctx context.Context, cfg host.UpgradeConfig) <-chan error {
	return begin(func() error { return v.supervisor.Upgrade(ctx, cfg) })
}

// becomes waits until the session is in a state. The host receives a state after the replies
// that the plugin has sent before it.
func (v *surviving) becomes(state recipes.State) {
	v.Helper()
	for e := range v.session.Events(ctx(v)) {
		if e.State == state {
			return
		}
	}
	v.Fatalf("not %v: %v", state, v.session.Err())
}

// TestAnUpgradeLetsCallsFinish: the old plugin answers the calls in flight. Later calls wait for
// the new one.
func TestAnUpgradeLetsCallsFinish(t *testing.T) {
	v := survive(t)
	v.supervisor.SetPause(patience)
	h := v.holds("/l")
	first, answer := v.writeUnanswered(h, "/first")
	upgraded := v.upgrades(ctx(t), v.another())
	v.becomes(recipes.Suspended)
	second := begin(func() error { return h.Write(ctx(t), recipes.Create("/second", nil)) })
	opened := v.opens()
	answer()
	must.Report(t, errors.Join(<-first, <-second, <-opened, <-upgraded))
}

// opens opens and closes a session in the background.
func (v *surviving) opens() <-chan error {
	return begin(func() error {
		s, err := v.supervisor.Open(ctx(v), recipes.SessionConfig{Servers: v.servers})
		if err == nil {
			err = s.Close(ctx(v))
		}
		return err
	})
}

// TestCallsThatAnUpgradeDoesNotWaitFor: a write that is not answered in time has an unknown
// outcome. Calls that can be repeated are repeated.
func TestCallsThatAnUpgradeDoesNotWaitFor(t *testing.T) {
	t.Parallel()
	v := survive(t)
	h, other := v.holds("/l"), v.holds("/other")
	written, _ := v.writeUnanswered(h, "/written") // from now on the server answers nothing in this session
	released := begin(func() error { return other.Release(ctx(t)) })
	listed := begin(func() error { _, err := v.session.Contenders(ctx(t), "/l"); return err })
	var third recipes.Hold
	acquired := begin(func() (err error) { third, err = lockAt(t, v.session, "/third").Acquire(ctx(t)); return err })
	v.exists("/written")
	must.Do(t, v.supervisor.Upgrade(ctx(t), v.another()))
	if err := <-written; !errors.Is(err, recipes.ErrUnknownOutcome) || errors.Is(err, recipes.ErrSessionLost) {
		t.Errorf("a write that was not answered: %v", err)
	}
	must.Do(t, errors.Join(<-released, <-listed, <-acquired, h.Err()))
	if there := ephemerals(v.server, "/third"); len(there) != 1 || there[0] != third.Znode() {
		t.Errorf("%q exist, and %s is held", there, third.Znode())
	}
	v.nothingLeft("/other")
}

// TestAWaiterSurvivesAPluginThatDoesNotExit: the old plugin detaches from the session, which
// ends the call, and is killed a second later.
func TestAWaiterSurvivesAPluginThatDoesNotExit(t *testing.T) {
	t.Parallel()
	v := survive(t)
	must.Do(t, v.supervisor.Upgrade(ctx(t), host.UpgradeConfig{Plugin: config(t, "lingering plugin")}))
	first := must.Get(lockAt(t, v.rival, "/l").Acquire(ctx(t)))(t)
	joined := make(chan struct{})
	l, _ := v.session.Lock("/l", recipes.LockConfig{Joined: func(recipes.Place) { close(joined) }})
	got := begin(func() error { _, err := l.Acquire(ctx(t)); return err })
	closes(t, "joined", joined)
	place := ephemerals(v.server, "/l")
	v.upgrade()
	if now := ephemerals(v.server, "/l"); !slices.Equal(now, place) {
		t.Errorf("the wait queue was %q, then %q", place, now)
	}
	must.Report(t, errors.Join(first.Release(ctx(t)), <-got))
}

// refuseAll makes the server end the connection at each request of the plugin's session.
func (v *surviving) refuseAll() {
	id := v.session.ID()
	v.server.SetFault(func(r zkserver.Request) zkserver.Fault { return zkserver.Fault{CloseBefore: r.SessionID == id} })
}

// TestAnUpgradeIsCanceled: if ctx ends before the old plugin has to detach, nothing changes.
// If it ends later, the upgrade continues.
func TestAnUpgradeIsCanceled(t *testing.T) {
	t.Run("start", func(t *testing.T) {
		v := survive(t)
		canceled, cancel := context.WithCancel(ctx(t))
		reports := listen(t)
		upgraded := v.upgrades(canceled, host.UpgradeConfig{Plugin: config(t, "silent", reports.env())})
		reports.accept(t, "silent")
		cancel()
		v.stillServedBy(v.supervisor.Plugin(), <-upgraded, context.Canceled)
	})
	t.Run("pause", func(t *testing.T) {
		v := survive(t)
		v.supervisor.SetPause(patience)
		h := v.holds("/l")
		canceled, cancel := context.WithCancel(ctx(t))
		written, answer := v.writeUnanswered(h, "/first")
		old := v.supervisor.Plugin()
		upgraded := v.upgrades(canceled, v.another())
		v.becomes(recipes.Suspended)
		opened := v.opens()
		cancel()
		err := <-upgraded
		answer()
		must.Report(t, errors.Join(<-opened, <-written, h.Write(ctx(t), recipes.Create("/second", nil))))
		v.stillServedBy(old, err, context.Canceled)
	})
	t.Run("resuming", func(t *testing.T) {
		v := survive(t)
		h := v.holds("/l")
		v.refuseAll()
		canceled, cancel := context.WithCancel(ctx(t))
		upgraded := v.upgrades(canceled, v.another())
		c := next(t, v.changes)
		cancel()
		if err := <-upgraded; !errors.Is(err, context.Canceled) || errors.Is(err, host.ErrNotUpgraded) {
			t.Error(err)
		}
		if now := v.supervisor.Plugin(); now != c.Plugin || c.Err != nil {
			t.Errorf("%+v, and %d runs", c, now.PID())
		}
		v.server.SetFault(nil)
		must.Report(t, h.Write(ctx(t), recipes.Create("/written", nil)))
	})
}

// stillServedBy checks that an upgrade has replaced nothing.
func (v *surviving) stillServedBy(old *host.Plugin, err, want error) {
	v.Helper()
	if !errors.Is(err, host.ErrNotUpgraded) || !errors.Is(err, want) {
		v.Errorf("the upgrade: %v", err)
	}
	if v.supervisor.Plugin() != old {
		v.Error("another plugin runs")
	}
	v.becomes(recipes.Connected)
	v.upgrade()
}

// TestTheNewPluginDiesBeforeTheOldOneDetaches: the old one still serves.
func TestTheNewPluginDiesBeforeTheOldOneDetaches(t *testing.T) {
	v := survive(t)
	v.supervisor.SetPause(patience)
	h := v.holds("/l")
	reports := listen(t)
	cfg := host.UpgradeConfig{Plugin: config(t, "real plugin", reports.env())}
	for try := range 10 {
		written, answer := v.writeUnanswered(h, fmt.Sprintf("/written-%d", try))
		old := v.supervisor.Plugin()
		upgraded := v.upgrades(ctx(t), cfg)
		pid := reports.accept(t, "plugin").pid(t)
		v.becomes(recipes.Suspended)
		signal(t, pid, syscall.SIGKILL)
		eventually(t, func() string { return unless(!runs(pid), "process %d was not reaped", pid) })
		answer()
		must.Report(t, errors.Join(<-written, h.Err()))
		err := <-upgraded
		if v.supervisor.Plugin() == old {
			v.stillServedBy(old, err, host.ErrNotUpgraded)
			return
		}
		// The host had not noticed the death yet. A new process of the old program runs.
		if !errors.Is(err, host.ErrNotUpgraded) {
			t.Error(err)
		}
	}
	t.Error("each time the old plugin was ended, although the new one was dead")
}

// TestUpgradesOfADyingPlugin: concurrent upgrades replace it, without the wait for a restart.
func TestUpgradesOfADyingPlugin(t *testing.T) {
	t.Parallel()
	v := survive(t)
	h := v.holds("/l")
	v.suspend()
	first, second := v.upgrades(ctx(t), v.another()), v.upgrades(ctx(t), v.another())
	v.proceed()
	must.Report(t, errors.Join(<-first, <-second, h.Write(ctx(t))))
}

// TestAnUpgradeDoesNotWaitForARestart: the wait before a restart can be long.
func TestAnUpgradeDoesNotWaitForARestart(t *testing.T) {
	t.Parallel()
	s := must.Get(host.Supervise(ctx(t), host.SupervisorConfig{
		Plugin: config(t, "real plugin"), MinBackoff: time.Hour,
	}))(t)
	defer s.Close(context.Background())
	server := embedded(t)
	session := must.Get(s.Open(ctx(t), recipes.SessionConfig{Servers: []string{server.Addr()}, SessionTimeout: longTimeout}))(t)
	h := must.Get(lockAt(t, session, "/l").Acquire(ctx(t)))(t)
	p := s.Plugin()
	crash(t, p.PID())
	closes(t, "Exited", p.Exited())
	if err := s.Upgrade(ctx(t), host.UpgradeConfig{Plugin: config(t, "plugin")}); !errors.Is(err, host.ErrLosesSessions) {
		t.Error(err)
	}
	must.Do(t, s.Upgrade(ctx(t), host.UpgradeConfig{Plugin: config(t, "real plugin")}))
	must.Report(t, h.Write(ctx(t)))
}

// TestAnUpgradeAndClose: both return, and no plugin is left.
func TestAnUpgradeAndClose(t *testing.T) {
	t.Parallel()
	for name, reach := range map[string]func(v *surviving, h recipes.Hold, started func()){
		"start": func(_ *surviving, _ recipes.Hold, started func()) { started() },
		"pause": func(v *surviving, h recipes.Hold, started func()) {
			v.supervisor.SetPause(patience)
			v.writeUnanswered(h, "/written")
			started()
			v.becomes(recipes.Suspended)
		},
		"resuming": func(v *surviving, _ recipes.Hold, started func()) {
			v.refuseAll()
			started()
			next(v.T, v.changes)
		},
	} {
		t.Run(name, func(t *testing.T) {
			v := survive(t)
			h, reports, old := v.holds("/l"), listen(t), v.supervisor.Plugin()
			var upgraded <-chan error
			pid := 0
			reach(v, h, func() {
				upgraded = v.upgrades(ctx(t), host.UpgradeConfig{Plugin: config(t, "real plugin", reports.env())})
				pid = reports.accept(t, "plugin").pid(t)
			})
			if err := v.supervisor.Close(ctx(t)); err != nil && name != "pause" { // at that address the server does not answer
				t.Errorf("Close: %v", err)
			}
			if runs(pid) || runs(old.PID()) {
				t.Errorf("the new plugin runs: %t; the old one: %t", runs(pid), runs(old.PID()))
			}
			if err := <-upgraded; (err == nil) != (name == "resuming") || err != nil && !errors.Is(err, host.ErrNotUpgraded) {
				t.Errorf("Upgrade: %v", err)
			}
			closes(t, "Done", h.Done())
			if err := v.supervisor.Upgrade(ctx(t), v.another()); !errors.Is(err, host.ErrNotUpgraded) || !errors.Is(err, recipes.ErrUnavailable) {
				t.Errorf("after Close: %v", err)
			}
		})
	}
}
