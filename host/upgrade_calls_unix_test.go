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

// unanswered has the server carry out guarded writes and releases at /l in the session. It
// keeps back their answers, and all that follow, until answer is called. reached is closed
// at the first one.
func (v *surviving) unanswered() (reached <-chan struct{}, answer func()) {
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
	return at, answer
}

// becomes waits until the session is in that state, which the host hears of after an answer.
func (v *surviving) becomes(state recipes.State) {
	v.Helper()
	for e := range v.session.Events(ctx(v)) {
		if e.State == state {
			return
		}
	}
	v.Fatalf("not %v: %v", state, v.session.Err())
}

// TestAnUpgradeLetsCallsFinish: the old plugin answers what is under way, and what begins
// then waits for the new one.
func TestAnUpgradeLetsCallsFinish(t *testing.T) {
	v := survive(t)
	h := must.Get(lockAt(t, v.session, "/l").Acquire(ctx(t)))(t)
	reached, answer := v.unanswered()
	written, upgraded := make(chan error, 2), make(chan error, 1)
	go func() { written <- h.Write(ctx(t), recipes.Create("/first", nil)) }()
	closes(t, "the point", reached)
	go func() { upgraded <- v.supervisor.Upgrade(ctx(t), v.another()) }()
	v.becomes(recipes.Suspended)
	go func() { written <- h.Write(ctx(t), recipes.Create("/second", nil)) }()
	opened := v.opens()
	answer()
	must.Report(t, errors.Join(<-written, <-written, <-opened, <-upgraded))
}

// opens opens and closes a session. The result comes when that is done.
func (v *surviving) opens() <-chan error {
	done := make(chan error, 1)
	go func() {
		s, err := v.supervisor.Open(ctx(v), recipes.SessionConfig{Servers: v.servers})
		if err == nil {
			err = s.Close(ctx(v))
		}
		done <- err
	}()
	return done
}

// TestCallsThatAnUpgradeDoesNotWaitFor: a change that is not answered in time has an unknown
// outcome. What can be repeated is.
func TestCallsThatAnUpgradeDoesNotWaitFor(t *testing.T) {
	t.Parallel()
	v := survive(t)
	h := must.Get(lockAt(t, v.session, "/l").Acquire(ctx(t)))(t)
	other := must.Get(lockAt(t, v.session, "/other").Acquire(ctx(t)))(t)
	reached, _ := v.unanswered()
	written, rest := make(chan error, 1), make(chan error, 3)
	go func() { written <- h.Write(ctx(t), recipes.Create("/written", nil)) }()
	closes(t, "the point", reached) // from now on nothing in this session is answered
	go func() { rest <- other.Release(ctx(t)) }()
	go func() { _, err := v.session.Contenders(ctx(t), "/l"); rest <- err }()
	got := make(chan recipes.Hold, 1)
	go func() {
		third, err := lockAt(t, v.session, "/third").Acquire(ctx(t))
		got <- third
		rest <- err
	}()
	v.exists("/written")
	must.Do(t, v.supervisor.Upgrade(ctx(t), v.another()))
	if err := <-written; !errors.Is(err, recipes.ErrUnknownOutcome) || errors.Is(err, recipes.ErrSessionLost) {
		t.Errorf("a write that was not answered: %v", err)
	}
	must.Report(t, errors.Join(<-rest, <-rest, <-rest, h.Err()))
	third := <-got
	if there := ephemerals(v.server, "/third"); len(there) != 1 || there[0] != third.Znode() {
		t.Errorf("%q are there, and %s is held", there, third.Znode())
	}
	if there := ephemerals(v.server, "/other"); len(there) > 0 {
		t.Errorf("left: %q", there)
	}
}

// TestAWaiterOutlivesAPluginThatDoesNotEnd: the old plugin lets go of the session, which ends
// the call, and is killed a second later.
func TestAWaiterOutlivesAPluginThatDoesNotEnd(t *testing.T) {
	t.Parallel()
	v := survive(t)
	must.Do(t, v.supervisor.Upgrade(ctx(t), host.UpgradeConfig{Plugin: config(t, "lingering plugin")}))
	first := must.Get(lockAt(t, v.rival, "/l").Acquire(ctx(t)))(t)
	joined, got := make(chan struct{}), make(chan error, 1)
	l, _ := v.session.Lock("/l", recipes.LockConfig{Joined: func(recipes.Place) { close(joined) }})
	go func() { _, err := l.Acquire(ctx(t)); got <- err }()
	closes(t, "joined", joined)
	place := ephemerals(v.server, "/l")
	v.upgrade()
	if now := ephemerals(v.server, "/l"); !slices.Equal(now, place) {
		t.Errorf("in line %q, then %q", place, now)
	}
	must.Report(t, errors.Join(first.Release(ctx(t)), <-got))
}

// TestAnUpgradeIsCancelled: before the old plugin was asked to let go nothing has changed.
// After that the upgrade goes on.
func TestAnUpgradeIsCancelled(t *testing.T) {
	t.Run("start", func(t *testing.T) {
		v := survive(t)
		gone, cancel := context.WithCancel(ctx(t))
		reports := listen(t)
		upgraded := make(chan error, 1)
		cfg := host.UpgradeConfig{Plugin: config(t, "silent", reports.env())}
		go func() { upgraded <- v.supervisor.Upgrade(gone, cfg) }()
		reports.accept(t, "silent")
		cancel()
		v.goesOnWith(v.supervisor.Plugin(), <-upgraded, context.Canceled)
	})
	t.Run("pause", func(t *testing.T) {
		v := survive(t)
		h, err := lockAt(t, v.session, "/l").Acquire(ctx(t))
		if err != nil {
			t.Fatal(err)
		}
		gone, cancel := context.WithCancel(ctx(t))
		reached, answer := v.unanswered()
		written, upgraded := make(chan error, 1), make(chan error, 1)
		go func() { written <- h.Write(ctx(t), recipes.Create("/first", nil)) }()
		closes(t, "the point", reached)
		old := v.supervisor.Plugin()
		go func() { upgraded <- v.supervisor.Upgrade(gone, v.another()) }()
		v.becomes(recipes.Suspended)
		opened := v.opens()
		cancel()
		err = <-upgraded
		answer()
		must.Report(t, errors.Join(<-opened, <-written, h.Write(ctx(t), recipes.Create("/second", nil))))
		v.goesOnWith(old, err, context.Canceled)
	})
	t.Run("resuming", func(t *testing.T) {
		v := survive(t)
		h := must.Get(lockAt(t, v.session, "/l").Acquire(ctx(t)))(t)
		id := v.session.ID()
		v.server.SetFault(func(r zkserver.Request) zkserver.Fault {
			return zkserver.Fault{CloseBefore: r.SessionID == id}
		})
		gone, cancel := context.WithCancel(ctx(t))
		upgraded := make(chan error, 1)
		go func() { upgraded <- v.supervisor.Upgrade(gone, v.another()) }()
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

// goesOnWith checks that an upgrade has replaced nothing.
func (v *surviving) goesOnWith(old *host.Plugin, err, want error) {
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

// TestTheNewPluginDiesBeforeItsTurn: the old one goes on.
func TestTheNewPluginDiesBeforeItsTurn(t *testing.T) {
	v := survive(t)
	h := must.Get(lockAt(t, v.session, "/l").Acquire(ctx(t)))(t)
	reports := listen(t)
	cfg := host.UpgradeConfig{Plugin: config(t, "real plugin", reports.env())}
	for try := range 10 {
		reached, answer := v.unanswered()
		written, upgraded := make(chan error, 1), make(chan error, 1)
		go func() { written <- h.Write(ctx(t), recipes.Create(fmt.Sprintf("/written-%d", try), nil)) }()
		closes(t, "the point", reached)
		old := v.supervisor.Plugin()
		go func() { upgraded <- v.supervisor.Upgrade(ctx(t), cfg) }()
		pid := reports.accept(t, "plugin").pid(t)
		v.becomes(recipes.Suspended)
		signal(t, pid, syscall.SIGKILL)
		v.reaped(pid)
		answer()
		must.Report(t, errors.Join(<-written, h.Err()))
		err := <-upgraded
		if v.supervisor.Plugin() == old {
			v.goesOnWith(old, err, host.ErrNotUpgraded)
			return
		}
		// The host had not noticed yet. The old program runs again, in another process.
		if !errors.Is(err, host.ErrNotUpgraded) {
			t.Error(err)
		}
	}
	t.Error("the old plugin was ended for one that had ended before")
}

// reaped waits until a process was waited for.
func (v *surviving) reaped(pid int) {
	v.Helper()
	for end := time.Now().Add(patience); runs(pid); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			v.Fatalf("process %d runs", pid)
		}
	}
}

// TestUpgradesOfADyingPlugin: the new one takes its place, without the wait for a restart.
func TestUpgradesOfADyingPlugin(t *testing.T) {
	v := survive(t)
	h := must.Get(lockAt(t, v.session, "/l").Acquire(ctx(t)))(t)
	v.suspend()
	upgraded := make(chan error, 2)
	for range cap(upgraded) { // at once
		go func() { upgraded <- v.supervisor.Upgrade(ctx(t), v.another()) }()
	}
	v.goOn()
	must.Report(t, errors.Join(<-upgraded, <-upgraded, h.Write(ctx(t))))
}

// TestAnUpgradeDoesNotWaitForARestart: which may be far away, for a plugin that never starts.
func TestAnUpgradeDoesNotWaitForARestart(t *testing.T) {
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
			reached, _ := v.unanswered()
			go func() { _ = h.Write(ctx(v), recipes.Create("/written", nil)) }()
			closes(v, "the point", reached)
			started()
			v.becomes(recipes.Suspended)
		},
		"resuming": func(v *surviving, _ recipes.Hold, started func()) {
			id := v.session.ID()
			v.server.SetFault(func(r zkserver.Request) zkserver.Fault {
				return zkserver.Fault{CloseBefore: r.SessionID == id}
			})
			started()
			next(v.T, v.changes)
		},
	} {
		t.Run(name, func(t *testing.T) {
			v := survive(t)
			h := must.Get(lockAt(t, v.session, "/l").Acquire(ctx(t)))(t)
			reports := listen(t)
			old, upgraded := v.supervisor.Plugin(), make(chan error, 1)
			cfg, pid := host.UpgradeConfig{Plugin: config(t, "real plugin", reports.env())}, 0
			reach(v, h, func() {
				go func() { upgraded <- v.supervisor.Upgrade(ctx(t), cfg) }()
				pid = reports.accept(t, "plugin").pid(t)
			})
			if err := v.supervisor.Close(ctx(t)); err != nil && name != "pause" { // the server answers nobody
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
