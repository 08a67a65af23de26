//go:build unix

package host_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/zkrecipes/zkrecipes/host"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// TestAnUpgradeDuringAnOutageChangesNothing: the time without a plugin would leave less of the
// session's timeout for the outage. LoseSessions accepts that.
func TestAnUpgradeDuringAnOutageChangesNothing(t *testing.T) {
	t.Parallel()
	v := survive(t)
	h := v.holds("/l")
	old := v.supervisor.Plugin()
	v.server.RefuseConnections(true)
	v.server.CloseConnection(v.session.ID())
	v.becomes(recipes.Suspended)
	err := v.supervisor.Upgrade(ctx(t), v.another())
	if !errors.Is(err, host.ErrNotUpgraded) || !errors.Is(err, host.ErrLosesSessions) || v.supervisor.Plugin() != old {
		t.Errorf("the upgrade: %v", err)
	}
	anyway := v.another()
	anyway.LoseSessions = true
	upgraded := v.upgrades(ctx(t), anyway)
	select {
	case <-v.changes:
	case err := <-upgraded:
		t.Fatal("with LoseSessions: ", err)
	}
	v.server.RefuseConnections(false)
	must.Report(t, errors.Join(<-upgraded, h.Write(ctx(t))))
}

// TestAnOutageThatBeginsDuringAnUpgradeStopsIt: the upgrade stops as long as the old plugin has not
// detached.
func TestAnOutageThatBeginsDuringAnUpgradeStopsIt(t *testing.T) {
	t.Parallel()
	v := survive(t)
	h := v.holds("/l")
	tried, proceed := make(chan struct{}), make(chan struct{})
	reach := sync.OnceFunc(func() { close(tried) })
	v.server.SetFault(func(r zkserver.Request) (f zkserver.Fault) {
		if r.Op == zkserver.OpCloseSession { // the session that tests the new plugin
			f.HoldReply = proceed
			reach()
		}
		return f
	})
	upgraded := v.upgrades(ctx(t), v.another())
	closes(t, "the session", tried)
	v.server.RefuseConnections(true)
	v.server.CloseConnection(v.session.ID())
	v.becomes(recipes.Suspended)
	close(proceed)
	select {
	case err := <-upgraded:
		if !errors.Is(err, host.ErrLosesSessions) {
			t.Error(err)
		}
	case c := <-v.changes:
		t.Errorf("the plugin was replaced: %+v", c)
	}
	v.server.RefuseConnections(false)
	must.Report(t, h.Write(ctx(t)))
}

// TestAnUpgradeWaitsForAReconnect: a lost connection is common, and must not make an upgrade
// fail.
func TestAnUpgradeWaitsForAReconnect(t *testing.T) {
	t.Parallel()
	v := survive(t)
	h := v.holds("/l")
	v.server.RefuseConnections(true)
	v.server.CloseConnection(v.session.ID())
	v.becomes(recipes.Suspended)
	v.server.RefuseConnections(false)
	v.upgrade()
	must.Report(t, h.Write(ctx(t)))
}

// TestAnUpgradeToAPluginThatReachesNoServerChangesNothing: the upgrade fails before the old
// plugin detaches.
func TestAnUpgradeToAPluginThatReachesNoServerChangesNothing(t *testing.T) {
	t.Parallel()
	v := survive(t)
	h := v.holds("/l")
	old := v.supervisor.Plugin()
	err := v.supervisor.Upgrade(ctx(t), host.UpgradeConfig{Plugin: config(t, "cut-off plugin")})
	if !errors.Is(err, recipes.ErrUnavailable) {
		t.Errorf("the reason is missing: %v", err)
	}
	v.stillServedBy(old, err, host.ErrLosesSessions)
	must.Report(t, h.Write(ctx(t)))
}

// TestANewPluginThatDiesAtItsFirstSessionsIsReplacedByTheOldOne: the supervisor starts the old
// program again, which resumes all sessions, even those that the new one has resumed.
func TestANewPluginThatDiesAtItsFirstSessionsIsReplacedByTheOldOne(t *testing.T) {
	t.Parallel()
	v, reports := survive(t), listen(t)
	before := host.UpgradeConfig{Plugin: config(t, "real plugin", reports.env())}
	must.Do(t, v.supervisor.Upgrade(ctx(t), before))
	first := reports.accept(t, "plugin").pid(t)
	var held []recipes.Hold
	for i := range 4 {
		s := must.Get(v.supervisor.Open(ctx(t), recipes.SessionConfig{Servers: v.servers, SessionTimeout: longTimeout}))(t)
		h := must.Get(lockAt(t, s, fmt.Sprint("/l-", i)).Acquire(ctx(t)))(t)
		held = append(held, h)
	}
	err := v.supervisor.Upgrade(ctx(t), host.UpgradeConfig{Plugin: config(t, "killed in resume")})
	if !errors.Is(err, host.ErrNotUpgraded) {
		t.Errorf("the upgrade: %v", err)
	}
	second := reports.accept(t, "plugin").pid(t)
	if second == first || v.supervisor.Plugin().PID() != second {
		t.Errorf("plugin %d runs; the old program had %d, and has %d", v.supervisor.Plugin().PID(), first, second)
	}
	for _, h := range held {
		must.Report(t, errors.Join(h.Err(), h.Write(ctx(t))))
	}
	v.kill() // restarts use the old configuration too
	reports.accept(t, "plugin")
}

// holdsThrough upgrades to another program, and acquires a lock in a new session through it.
func (v *surviving) holdsThrough(role string) (recipes.Client, recipes.Hold) {
	v.Helper()
	must.Do(v, v.supervisor.Upgrade(ctx(v), host.UpgradeConfig{Plugin: config(v, role)}))
	s := v.open(v.supervisor.Open)
	h := must.Get(lockAt(v.T, s, "/through").Acquire(ctx(v)))(v)
	return s, h
}

// TestAPluginThatKeepsASessionIsKilledInAnUpgrade: if it exited by itself, it would close the
// session from which it has not detached.
func TestAPluginThatKeepsASessionIsKilledInAnUpgrade(t *testing.T) {
	t.Parallel()
	v := survive(t)
	_, h := v.holdsThrough("keeping plugin")
	v.upgrade()
	must.Report(t, errors.Join(h.Err(), h.Write(ctx(t))))
}

// TestAPluginThatExitsByItselfIsNotResumed: it may have closed its sessions.
func TestAPluginThatExitsByItselfIsNotResumed(t *testing.T) {
	t.Parallel()
	v := survive(t)
	s, h := v.holdsThrough("leaving plugin")
	opening, cancel := context.WithCancel(ctx(t))
	defer cancel()
	opened := begin(func() error {
		_, err := v.supervisor.Plugin().Open(opening, recipes.SessionConfig{Servers: []string{leave}})
		return err
	})
	suspended := false
	for e := range s.Events(ctx(t)) { // until it is lost
		if suspended && e.State == recipes.Connected {
			t.Fatal("the session was resumed")
		}
		suspended = suspended || e.State == recipes.Suspended
	}
	if !errors.Is(s.Err(), recipes.ErrPluginLost) || !errors.Is(h.Err(), recipes.ErrNotHeld) {
		t.Errorf("%v; the hold: %v", s.Err(), h.Err())
	}
	cancel()
	if err := <-opened; err == nil {
		t.Error("a session was opened")
	}
}
