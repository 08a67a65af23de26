//go:build unix

package host_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/zkrecipes/zkrecipes/host"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// TestAnUpgradeDuringAnOutageChangesNothing: a session that cannot be resumed at once would
// have less of its timeout left for the outage.
func TestAnUpgradeDuringAnOutageChangesNothing(t *testing.T) {
	t.Parallel()
	v := survive(t)
	h, err := lockAt(t, v.session, "/l").Acquire(ctx(t))
	if err != nil {
		t.Fatal(err)
	}
	old := v.supervisor.Plugin()
	v.server.RefuseConnections(true)
	v.server.CloseConnection(v.session.ID())
	v.becomes(recipes.Suspended)
	err = v.supervisor.Upgrade(ctx(t), v.another())
	if !errors.Is(err, host.ErrNotUpgraded) || !errors.Is(err, host.ErrLosesSessions) || v.supervisor.Plugin() != old {
		t.Errorf("the upgrade: %v", err)
	}
	v.server.RefuseConnections(false)
	must.Report(t, h.Write(ctx(t)))
	v.goesOnWith(old, err, host.ErrLosesSessions)
}

// TestAnUpgradeInTheMiddleOfAReconnectWaitsForIt: connections are lost all the time.
func TestAnUpgradeInTheMiddleOfAReconnectWaitsForIt(t *testing.T) {
	v := survive(t)
	h := must.Get(lockAt(t, v.session, "/l").Acquire(ctx(t)))(t)
	v.server.RefuseConnections(true)
	v.server.CloseConnection(v.session.ID())
	v.becomes(recipes.Suspended)
	v.server.RefuseConnections(false)
	v.upgrade()
	must.Report(t, h.Write(ctx(t)))
}

// TestAnUpgradeToAPluginThatReachesNoServerChangesNothing: it is known before the old one
// lets go.
func TestAnUpgradeToAPluginThatReachesNoServerChangesNothing(t *testing.T) {
	v := survive(t)
	h, err := lockAt(t, v.session, "/l").Acquire(ctx(t))
	if err != nil {
		t.Fatal(err)
	}
	old := v.supervisor.Plugin()
	err = v.supervisor.Upgrade(ctx(t), host.UpgradeConfig{Plugin: config(t, "cut-off plugin")})
	if !errors.Is(err, recipes.ErrUnavailable) {
		t.Errorf("the reason is missing: %v", err)
	}
	v.goesOnWith(old, err, host.ErrLosesSessions)
	must.Report(t, h.Write(ctx(t)))
}

// TestANewPluginThatDiesAtItsFirstSessionsGivesWayToTheOldOne: the program that ran is
// started again, and takes up all sessions, also those that the new one had.
func TestANewPluginThatDiesAtItsFirstSessionsGivesWayToTheOldOne(t *testing.T) {
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
	v.kill() // the configuration is the old one too
	reports.accept(t, "plugin")
}

// holdsThrough has a session through another program hold a lock.
func (v *surviving) holdsThrough(role string) (recipes.Client, recipes.Hold) {
	v.Helper()
	must.Do(v, v.supervisor.Upgrade(ctx(v), host.UpgradeConfig{Plugin: config(v, role)}))
	s := v.open(v.supervisor.Open)
	h := must.Get(lockAt(v.T, s, "/through").Acquire(ctx(v)))(v)
	return s, h
}

// TestAPluginThatKeepsASessionIsKilledInAnUpgrade: it would close what it has not let go of.
func TestAPluginThatKeepsASessionIsKilledInAnUpgrade(t *testing.T) {
	v := survive(t)
	_, h := v.holdsThrough("keeping plugin")
	v.upgrade()
	must.Report(t, errors.Join(h.Err(), h.Write(ctx(t))))
}

// TestAPluginThatEndsInPeaceIsNotResumed: it may have closed its sessions.
func TestAPluginThatEndsInPeaceIsNotResumed(t *testing.T) {
	v := survive(t)
	s, h := v.holdsThrough("leaving plugin")
	opening, giveUp := context.WithCancel(ctx(t))
	defer giveUp()
	opened := make(chan error, 1)
	go func() {
		_, err := v.supervisor.Plugin().Open(opening, recipes.SessionConfig{Servers: []string{leave}})
		opened <- err
	}()
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
	giveUp()
	if err := <-opened; err == nil {
		t.Error("a session was opened")
	}
}
