package host_test

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/zkrecipes/zkrecipes/host"
	"github.com/zkrecipes/zkrecipes/internal/testing/ensembletest"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/testall"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// TestUpgradesUnderLoad: no hold is lost, no other client is granted one, waiters keep their
// order, and calls fail only with unknown outcomes. No descriptor, child or goroutine is left.
// The same applies when the plugin is killed again and again. make test-all upgrades between
// two builds of zkrecipes-plugin, other runs between processes of one program.
func TestUpgradesUnderLoad(t *testing.T) {
	t.Run("embedded", func(t *testing.T) {
		unlessReal(t)
		upgradesUnderLoad(t, []string{embedded(t).Addr()})
	})
	t.Run("real", func(t *testing.T) { upgradesUnderLoad(t, ensembletest.Shared(t).Addrs()) })
}

// unlessReal skips a test on the in-process server if there is a real one, except in make
// test-all.
func unlessReal(t *testing.T) {
	if ensembletest.Found() {
		testall.Require(t)
	}
}

func upgradesUnderLoad(t *testing.T, servers []string) {
	const holds = 10
	life, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	opened := func(open recipes.Opener) recipes.Client {
		return must.Get(open(life, recipes.SessionConfig{Servers: servers, SessionTimeout: longTimeout}))(t)
	}
	upgrades, builds := builds(t)
	must.Do(t, opened(zookeeper.Open).Close(life)) // a server starts goroutines with its first session
	before := countResources(t)

	s := must.Get(host.Supervise(life, host.SupervisorConfig{Plugin: builds[0].cfg, MinBackoff: time.Millisecond, MaxBackoff: time.Millisecond}))(t)
	ours, rival := opened(s.Open), opened(zookeeper.Open)
	l := &load{T: t, ctx: life, dir: "/load-" + uuid.NewString(), stop: make(chan struct{}), ours: ours, rival: rival, open: func() recipes.Client { return opened(s.Open) }}
	l.hold(holds)
	stop := sync.OnceFunc(func() { close(l.stop); l.work.Wait() })
	defer stop()
	l.run()

	var took []time.Duration
	for round := range upgrades {
		next := builds[(round+1)%len(builds)]
		old, began := s.Plugin().PID(), time.Now()
		if err := s.Upgrade(life, host.UpgradeConfig{Plugin: next.cfg}); err != nil {
			t.Fatalf("upgrade %d: %v", round, err)
		}
		took = append(took, time.Since(began))
		if version, err := s.Plugin().Version(life); err != nil || version != next.version || runs(old) {
			t.Fatalf("upgrade %d: %q runs, %v; the old one: %t", round, version, err, runs(old))
		}
		l.stillHolds()
		if round%10 == 0 { // an upgrade to a plugin that cannot resume changes nothing
			err := s.Upgrade(life, host.UpgradeConfig{Plugin: config(t, "older plugin")})
			if !errors.Is(err, host.ErrLosesSessions) {
				t.Errorf("to an older protocol: %v", err)
			}
			l.stillHolds()
		}
	}
	stop()
	l.kills(&surviving{T: t, supervisor: s, session: ours}, testall.Count(8, 200))
	l.release()
	slices.Sort(took)
	t.Logf("%d upgrades: p50 %v, p90 %v, worst %v; %d writes, %d turns, %d sessions, %d listings, %d outcomes unknown",
		upgrades, took[len(took)/2], took[len(took)*9/10], took[len(took)-1],
		l.writes.Load(), l.turns.Load(), l.sessions.Load(), l.listings.Load(), l.unknown.Load())

	// With LoseSessions, an upgrade to a plugin that cannot resume ends the sessions.
	err := s.Upgrade(life, host.UpgradeConfig{Plugin: config(t, "older plugin"), LoseSessions: true})
	if !errors.Is(err, recipes.ErrUnknownOutcome) { // a busy server confirms too late that they are closed
		must.Report(t, err)
	}
	closes(t, "Done", ours.Done())
	must.Report(t, errors.Join(rival.Close(life), s.Close(life)))
	stacks := make([]byte, 1<<20)
	eventually(t, func() string {
		after := countResources(t)
		if after.within(before) {
			return ""
		}
		return fmt.Sprintf("afterwards there is %+v; before there was %+v\n%s", after, before, stacks[:runtime.Stack(stacks, true)])
	})
}

// build is a plugin to upgrade to.
type build struct {
	cfg     host.Config
	version string
}

// builds returns the number of upgrades, and the plugins to upgrade to in turn.
func builds(t *testing.T) (upgrades int, made []build) {
	t.Helper()
	if !testall.On() {
		b := build{cfg: config(t, "real plugin")}
		p := launch(t, b.cfg)
		b.version = must.Get(p.Version(ctx(t)))(t)
		_ = p.Close(ctx(t))
		return 3, []build{b}
	}
	for _, version := range []string{"v0.0.1", "v0.0.2"} {
		path := filepath.Join(t.TempDir(), "zkrecipes-plugin")
		flags := "-X github.com/zkrecipes/zkrecipes/internal/version.release=" + version
		out, err := exec.CommandContext(t.Context(), "go", "build", "-ldflags", flags, "-o", path, "../cmd/zkrecipes-plugin").CombinedOutput()
		if err != nil {
			t.Fatalf("%v:\n%s", err, out)
		}
		made = append(made, build{host.Config{Path: path}, version})
	}
	return 50, made
}

// load makes calls in a session that upgrades move, and in another session.
type load struct {
	*testing.T
	ctx         context.Context
	dir         string
	ours, rival recipes.Client
	open        func() recipes.Client

	held    []recipes.Hold
	waiters []<-chan recipes.Hold // one for each hold

	stop chan struct{}
	work sync.WaitGroup

	busy                                       atomic.Int32 // holders of the lock of turn
	last                                       recipes.Token
	writes, turns, sessions, listings, unknown atomic.Int64
}

func (l *load) lock(s recipes.Recipes, path string, joined func(recipes.Place)) recipes.Lock {
	lock, err := s.Lock(l.dir+path, recipes.LockConfig{Joined: joined})
	if err != nil {
		l.Error(err)
	}
	return lock
}

// hold acquires locks until it has n, each with a waiter.
func (l *load) hold(n int) {
	for i := len(l.held); i < n; i++ {
		path := fmt.Sprintf("/held-%d", i)
		h := must.Get(l.lock(l.ours, path, nil).Acquire(l.ctx))(l)
		l.held = append(l.held, h)
		joined, got := make(chan struct{}), make(chan recipes.Hold, 1)
		go func() {
			h, err := l.lock(l.ours, path, func(recipes.Place) { close(joined) }).Acquire(l.ctx)
			if err != nil {
				l.Logf("a waiter: %v", err)
			}
			got <- h // release and stillHolds check the result
		}()
		closes(l, "joined", joined)
		l.waiters = append(l.waiters, got)
	}
}

// stillHolds checks that all locks are held, and that no other contender was granted one.
func (l *load) stillHolds() {
	l.Helper()
	for i, h := range l.held {
		if err := h.Err(); err != nil {
			l.Fatalf("hold %d: %v", i, err)
		}
		if len(l.waiters[i]) > 0 {
			l.Fatalf("the waiter for hold %d was granted", i)
		}
		places, err := l.rival.Contenders(l.ctx, fmt.Sprintf("%s/held-%d", l.dir, i))
		if err != nil || len(places.Contenders) != 2 || places.Contenders[0].Znode != h.Znode() {
			l.Fatalf("hold %s: the wait queue is %+v: %v", h.Znode(), places, err)
		}
	}
	if _, err := l.lock(l.rival, "/held-0", nil).TryAcquire(l.ctx); !errors.Is(err, recipes.ErrContended) {
		l.Fatalf("the rival: %v", err)
	}
}

// kills kills the plugin n times while the session has n/2 holds. Afterwards the host uses
// as many resources as before.
func (l *load) kills(v *surviving, n int) {
	l.hold(n / 2)
	v.kill()
	before, heap := countResources(l.T), inUse()
	var took []time.Duration
	for range n {
		took = append(took, v.kill())
		l.stillHolds()
	}
	eventually(l, func() string {
		after := countResources(l.T)
		return unless(after.within(before), "afterwards there is %+v; before there was %+v", after, before)
	})
	eventually(l, func() string {
		now := inUse()
		return unless(now < heap+2<<20, "afterwards there are %d KiB of heap; before there were %d", now>>10, heap>>10)
	})
	slices.Sort(took)
	l.Logf("from SIGKILL to served, of %d: p50 %v, p99 %v, worst %v", n, took[n/2], took[n*99/100], took[n-1])
}

// inUse returns the size of the heap after a garbage collection.
func inUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// run starts goroutines that make calls until stop.
func (l *load) run() {
	var n atomic.Int64
	l.repeat(2, func() error {
		i := n.Add(1)
		err := l.held[int(i)%len(l.held)].Write(l.ctx, recipes.Create(fmt.Sprintf("%s/written-%d", l.dir, i), nil))
		l.writes.Add(1)
		return l.known(err)
	})
	for _, s := range []recipes.Client{l.ours, l.ours, l.rival} {
		l.repeat(1, func() error { return l.turn(s) })
	}
	l.repeat(1, func() error {
		s := l.open()
		h, err := l.lock(s, "/opened", nil).Acquire(l.ctx)
		if err == nil {
			err = h.Release(l.ctx)
		}
		l.sessions.Add(1)
		return errors.Join(err, l.known(s.Close(l.ctx)))
	})
	l.repeat(1, func() error {
		_, err := l.ours.Contenders(l.ctx, l.dir+"/held-0")
		l.listings.Add(1)
		return err
	})
}

// known counts unknown outcomes, and returns any other error. On a busy machine an upgrade does
// not wait long enough for a write or a Close.
func (l *load) known(err error) error {
	if errors.Is(err, recipes.ErrUnknownOutcome) && !errors.Is(err, recipes.ErrSessionLost) {
		l.unknown.Add(1)
		return nil
	}
	return err
}

// repeat calls f until stop, in n goroutines.
func (l *load) repeat(n int, f func() error) {
	for range n {
		l.work.Go(func() {
			for {
				select {
				case <-l.stop:
					return
				default:
				}
				if err := f(); err != nil {
					l.Errorf("a call: %v", err)
					return
				}
			}
		})
	}
}

// turn acquires and releases a lock that has several contenders.
func (l *load) turn(s recipes.Recipes) error {
	h, err := l.lock(s, "/turns", nil).Acquire(l.ctx)
	if err != nil {
		return err
	}
	if n := l.busy.Add(1); n != 1 {
		l.Errorf("%d hold it", n)
	}
	if h.Token() <= l.last {
		l.Errorf("token %d after %d", h.Token(), l.last)
	}
	l.last = h.Token()
	l.turns.Add(1)
	l.busy.Add(-1)
	return h.Release(l.ctx)
}

// release releases the locks. Then each waiter is granted its lock.
func (l *load) release() {
	for i, h := range l.held {
		must.Report(l, h.Release(l.ctx))
		next := <-l.waiters[i]
		if next == nil || next.Token() <= h.Token() {
			l.Fatalf("after hold %d: %v", i, next)
		}
		must.Report(l, next.Release(l.ctx))
	}
}
