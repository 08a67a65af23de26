//go:build unix

package host_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/host"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// TestJoinedMayCallWhileItsPluginDies: the call waits for the next plugin, and the next plugin
// does not wait for Joined.
func TestJoinedMayCallWhileItsPluginDies(t *testing.T) {
	t.Parallel()
	v := survive(t)
	first := must.Get(lockAt(t, v.rival, "/l").Acquire(ctx(t)))(t)
	joined, call, answered := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	l := must.Get(v.session.Lock("/l", recipes.LockConfig{Joined: func(recipes.Place) {
		close(joined)
		<-call
		_, err := v.session.Contenders(ctx(t), "/l")
		answered <- err
	}}))(t)
	got := begin(func() error { _, err := l.Acquire(ctx(t)); return err })
	closes(t, "joined", joined)
	before := ephemerals(v.server, "/l")
	v.suspend()
	close(call)
	v.proceed()
	must.Report(t, <-answered)
	if after := ephemerals(v.server, "/l"); len(after) != 2 || after[1] != before[1] {
		t.Errorf("the wait queue was %q, then %q", before, after)
	}
	must.Report(t, first.Release(ctx(t)))
	must.Report(t, <-got)
}

// TestAWaiterForAPermitOfCuratorSurvivesItsPlugin: it is granted when the permit is free.
func TestAWaiterForAPermitOfCuratorSurvivesItsPlugin(t *testing.T) {
	t.Parallel()
	v := survive(t)
	acquire := func(s recipes.Client, joined func(recipes.Place)) (recipes.Hold, error) {
		m, err := s.Semaphore("/s", recipes.SemaphoreConfig{Permits: 1, Dialect: recipes.Curator, Joined: joined})
		if err != nil {
			return nil, err
		}
		return m.Acquire(ctx(t))
	}
	first := must.Get(acquire(v.rival, nil))(t)
	joined := make(chan struct{})
	got := begin(func() error {
		h, err := acquire(v.session, func(recipes.Place) { close(joined) })
		if err == nil {
			err = h.Release(ctx(t))
		}
		return err
	})
	closes(t, "joined", joined)
	v.kill()
	v.kill()
	must.Report(t, first.Release(ctx(t)))
	must.Report(t, <-got)
	v.nothingLeft("/s")
}

// TestASetSurvivesItsPlugin kills the plugin between the two locks of a set, and once more before a
// guarded write. The first lock keeps its znode.
func TestASetSurvivesItsPlugin(t *testing.T) {
	t.Parallel()
	v := survive(t)
	first := must.Get(lockAt(t, v.rival, "/set-b").Acquire(ctx(t)))(t)
	joined := make(chan struct{})
	second := must.Get(v.session.Lock("/set-b", recipes.LockConfig{Joined: func(recipes.Place) { close(joined) }}))(t)
	var set recipes.Holds
	got := begin(func() (err error) {
		set, err = recipes.AcquireAll(ctx(t), second, lockAt(t, v.session, "/set-a"))
		return err
	})
	closes(t, "joined", joined)
	before := ephemerals(v.server, "/set-a")
	v.kill()
	must.Do(t, first.Release(ctx(t)))
	must.Do(t, <-got)
	if after := ephemerals(v.server, "/set-a"); len(before) != 1 || !slices.Equal(before, after) {
		t.Errorf("the first lock had the znodes %q, then %q", before, after)
	}
	v.kill()
	must.Do(t, set.Write(ctx(t), recipes.Create("/written", nil)))
	must.Do(t, set.Release(ctx(t)))
	v.nothingLeft("/set-a")
	v.nothingLeft("/set-b")
}

// TestWaitsContinueInTheNextPlugin waits for an element, a barrier and a latch. A read in
// flight is repeated. Stats count from zero.
func TestWaitsContinueInTheNextPlugin(t *testing.T) {
	t.Parallel()
	v := survive(t)
	ours, theirs := v.session, v.rival
	queue := func(s recipes.Client) recipes.Queue { q, _ := s.Queue("/q", recipes.QueueConfig{}); return q }
	barrier := func(s recipes.Client) recipes.Barrier { b, _ := s.Barrier("/b"); return b }
	latch := func(s recipes.Client) recipes.Latch { l, _ := s.Latch("/n", recipes.LatchConfig{Count: 1}); return l }
	must.Do(t, barrier(theirs).Set(ctx(t), nil))
	waits := map[string]func() error{
		"element": func() error { _, err := queue(ours).Receive(ctx(t)); return err },
		"barrier": func() error { return barrier(ours).Wait(ctx(t)) },
		"latch":   func() error { return latch(ours).Wait(ctx(t)) },
	}
	counter, _ := ours.Counter("/counted", recipes.CounterConfig{})
	must.Get(counter.Add(ctx(t), 1))(t)
	before := must.Get(ours.Stats(ctx(t)))(t)
	ended := make(map[string]<-chan error)
	for name, wait := range waits {
		ended[name] = begin(wait)
	}
	for reads := before.Reads; reads < before.Reads+int64(len(waits)); { // until each has read
		reads = must.Get(ours.Stats(ctx(t)))(t).Reads
	}
	reached := v.unanswered(func(r zkserver.Request) bool { return r.Op == zkserver.OpGetData && strings.HasPrefix(r.Path, "/read") })
	read := begin(func() error {
		c, _ := ours.Counter("/read", recipes.CounterConfig{})
		_, err := c.Get(ctx(t))
		return err
	})
	closes(t, "the read", reached)
	v.kill()
	if err := <-read; err != nil {
		t.Errorf("a read in flight: %v", err)
	}
	after, err := ours.Stats(ctx(t))
	if err != nil || before.ByKind["create"] == 0 || after.ByKind["create"] != 0 {
		t.Errorf("%+v, then %+v, %v", before, after, err)
	}
	for name, done := range ended {
		if len(done) > 0 {
			t.Fatalf("%s: the wait has ended: %v", name, <-done)
		}
	}
	_, err = queue(theirs).Put(ctx(t), nil)
	_, counted := latch(theirs).CountDown(ctx(t))
	must.Do(t, errors.Join(err, counted, barrier(theirs).Remove(ctx(t))))
	for name, done := range ended {
		if err := <-done; err != nil {
			t.Errorf("%s: %v", name, err)
		}
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

// remove deletes a znode, like an operator.
func (v *surviving) remove(znode string) {
	v.Helper()
	by := must.Get(lockAt(v.T, v.rival, "/operator").Acquire(ctx(v)))(v)
	must.Do(v, errors.Join(by.Write(ctx(v), recipes.Delete(znode, recipes.AnyVersion)), by.Release(ctx(v))))
}

// TestTheNextPluginReportsALoss: the znode of a hold is deleted while no plugin runs, or after
// the next plugin has resumed the hold.
func TestTheNextPluginReportsALoss(t *testing.T) {
	t.Parallel()
	v := survive(t)
	for _, suspended := range []bool{true, false} {
		h := v.holds("/l")
		lost := h.Done()
		if suspended {
			v.suspend()
			v.remove(h.Znode())
			v.proceed()
		} else {
			v.kill()
			must.Do(t, h.Write(ctx(t)))
			v.kill() // the write shows that the first plugin watches
			v.remove(h.Znode())
		}
		closes(t, "Done", lost)
		if err := h.Err(); !errors.Is(err, recipes.ErrRemoved) || errors.Is(err, recipes.ErrSessionLost) {
			t.Error(err)
		}
	}
	must.Report(t, v.session.Err())
}

// TestOnlyGrantsWithoutTheirZnodesAreLost: another client has deleted the znode of a grant,
// and may have created it again. The session continues, and the new znode does not change.
func TestOnlyGrantsWithoutTheirZnodesAreLost(t *testing.T) {
	t.Parallel()
	for name, again := range map[string]bool{"deleted": false, "created again": true} {
		t.Run(name, func(t *testing.T) { onlyGrantsWithoutTheirZnodesAreLost(t, again) })
	}
}

func onlyGrantsWithoutTheirZnodesAreLost(t *testing.T, again bool) {
	v := survive(t)
	kept, held := v.holds("/kept"), v.holdsAll()
	operator := must.Get(lockAt(t, v.rival, "/operator").Acquire(ctx(t)))(t)
	v.suspend()
	var znodes []string
	for i, g := range held {
		znodes = append(znodes, g.Znode())
		err := operator.Write(ctx(t), recipes.Delete(g.Znode(), recipes.AnyVersion))
		if err == nil && again {
			err = operator.Write(ctx(t), recipes.Create(g.Znode(), []byte("theirs")))
		}
		if err != nil {
			t.Fatalf("%s: %v", holdings[i].name, err)
		}
	}
	made := v.nodes(znodes...)
	v.proceed()
	for i, g := range held {
		h := holdings[i]
		closes(t, h.name, g.Done())
		if err := g.Err(); !errors.Is(err, recipes.ErrNotHeld) || errors.Is(err, recipes.ErrSessionLost) {
			t.Errorf("%s: %v", h.name, err)
		}
		if err := g.Write(ctx(t)); !errors.Is(err, recipes.ErrNotHeld) {
			t.Errorf("%s: a write: %v", h.name, err)
		}
		_ = h.giveBack(ctx(t), g) // its error is not the subject
	}
	must.Report(t, errors.Join(kept.Err(), kept.Write(ctx(t)), kept.Release(ctx(t)), v.session.Err()))
	if now := v.nodes(znodes...); again && len(now) != len(znodes) || !slices.Equal(now, made) {
		t.Errorf("created as %q, now %q", made, now)
	}
}

// nodes returns those of the znodes that exist, with all their data.
func (v *surviving) nodes(znodes ...string) (all []string) {
	for _, n := range v.server.Tree() {
		if slices.Contains(znodes, n.Path) {
			all = append(all, fmt.Sprintf("%+v", n))
		}
	}
	return all
}

// TestATurnSurvivesItsPlugin kills the plugin between the beginning of a turn and its count, and after
// the server has counted it and before the plugin answers.
func TestATurnSurvivesItsPlugin(t *testing.T) {
	t.Parallel()
	v := survive(t)
	due := func(s recipes.Client, g recipes.Grant) (*recipes.Turn, error) {
		return recipes.OncePer(ctx(t), g, must.Get(s.Configuration("/turns"))(t), time.Hour)
	}
	hold := v.holds("/turns")
	turn := must.Get(due(v.session, hold))(t)
	v.kill()
	reached := v.unanswered(func(r zkserver.Request) bool { return r.Op == zkserver.OpMulti })
	counted := begin(func() error { return turn.Count(ctx(t)) })
	closes(t, "the count", reached)
	v.kill()
	must.Do(t, <-counted)
	must.Do(t, turn.Count(ctx(t)))
	must.Do(t, hold.Release(ctx(t)))
	hold = must.Get(lockAt(t, v.rival, "/turns").Acquire(ctx(t)))(t)
	_, err := due(v.rival, hold)
	if early := (*recipes.NotDueError)(nil); !errors.As(err, &early) || !early.Last.Equal(turn.Began()) {
		t.Errorf("error %v; the turn began at %v", err, turn.Began())
	}
}

// TestATurnEndsWithItsPlugin: without a supervisor the session is lost with the plugin. The turn does not
// count, and the next holder's is due.
func TestATurnEndsWithItsPlugin(t *testing.T) {
	t.Parallel()
	server := embedded(t)
	p := must.Get(host.Launch(ctx(t), config(t, "real plugin")))(t)
	t.Cleanup(func() { _ = p.Close(context.Background()) })
	turn := func(s recipes.Client) (*recipes.Turn, error) {
		hold := must.Get(lockAt(t, s, "/turns").Acquire(ctx(t)))(t)
		return recipes.OncePer(ctx(t), hold, must.Get(s.Configuration("/turns"))(t), time.Hour)
	}
	open := func(o recipes.Opener) recipes.Client {
		s := must.Get(o(ctx(t), recipes.SessionConfig{Servers: []string{server.Addr()}, SessionTimeout: longTimeout}))(t)
		t.Cleanup(func() { _ = s.Close(context.Background()) })
		return s
	}
	dying := open(p.Open)
	begun := must.Get(turn(dying))(t)
	signal(t, p.PID(), syscall.SIGKILL)
	if err := begun.Count(ctx(t)); !errors.Is(err, recipes.ErrNotHeld) {
		t.Errorf("error %v; want ErrNotHeld", err)
	}
	server.ExpireSession(dying.ID())
	must.Get(turn(open(zookeeper.Open)))(t)
}
