//go:build unix

package host_test

import (
	"errors"
	"strings"
	"syscall"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
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
	if err != nil || before.ByKind["multi"] == 0 || after.ByKind["multi"] != 0 {
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
