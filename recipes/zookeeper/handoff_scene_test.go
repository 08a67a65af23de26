package zookeeper_test

import (
	"context"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/google/uuid"
	"github.com/zkrecipes/zkrecipes/internal/testing/ensembletest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// scene is a line whose contenders wait by handoff, each in a session of its own.
type scene struct {
	*testing.T
	ctx  context.Context
	addr string
	path string
	raw  *zk.Conn // of another client
}

// onBoth runs a case on the in-process server and on a real one.
func onBoth(t *testing.T, f func(*scene)) {
	run := func(t *testing.T, addr string) {
		raw, _, err := zk.Connect([]string{addr}, 10*time.Second, zk.WithLogInfo(false))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(raw.Close)
		f(&scene{T: t, ctx: bounded(t), addr: addr, path: "/" + uuid.NewString(), raw: raw})
	}
	t.Run("embedded", func(t *testing.T) { run(t, embedded(t).Addr()) })
	t.Run("real", func(t *testing.T) { run(t, ensembletest.Shared(t).Addrs()[0]) })
}

// onEmbedded is onBoth's for what only the in-process server can do.
func onEmbedded(t *testing.T, f func(*scene, *zkserver.Server)) {
	srv := embedded(t)
	onServer(t, srv, func(s *scene) { f(s, srv) })
}

// onServer is onEmbedded's for a server that several cases share.
func onServer(t *testing.T, srv *zkserver.Server, f func(*scene)) {
	raw, _, err := zk.Connect([]string{srv.Addr()}, deadline, zk.WithLogInfo(false))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(raw.Close)
	f(&scene{T: t, ctx: bounded(t), addr: srv.Addr(), path: "/line", raw: raw})
}

func (s *scene) session() recipes.Session {
	s.Helper()
	opened := must[recipes.Session](s.T)(zookeeper.Open(s.ctx, recipes.SessionConfig{Servers: []string{s.addr}, MaxPacket: 64 << 10}))
	s.Cleanup(func() { opened.Close(context.Background()) })
	return opened
}

// contender stands in line.
type contender struct {
	session recipes.Session
	place   recipes.Place
	cancel  context.CancelFunc
	held    chan recipes.Hold
	failed  chan error
}

// join has a new session join the line, and returns when it waits, or holds.
func (s *scene) join() *contender {
	s.Helper()
	return s.joinWith(s.session(), recipes.Handoff)
}

func (s *scene) joinWith(session recipes.Session, strategy recipes.Strategy) *contender {
	s.Helper()
	ctx, cancel := context.WithCancel(s.ctx)
	s.Cleanup(cancel)
	c := &contender{session: session, cancel: cancel, held: make(chan recipes.Hold, 1), failed: make(chan error, 1)}
	joined := make(chan recipes.Place, 1)
	l := must[recipes.Lock](s.T)(session.Lock(s.path, recipes.LockConfig{Strategy: strategy, Joined: func(p recipes.Place) { joined <- p }}))
	go func() {
		hold, err := l.Acquire(ctx)
		if err != nil {
			c.failed <- err
			return
		}
		c.held <- hold
	}()
	select {
	case c.place = <-joined:
	case err := <-c.failed:
		s.Fatal(err)
	}
	return c
}

func (s *scene) hold(c *contender) recipes.Hold {
	s.Helper()
	select {
	case h := <-c.held:
		return h
	case err := <-c.failed:
		s.Fatal(err)
	case <-s.ctx.Done():
		s.Fatal("not granted")
	}
	return nil
}

func (s *scene) failure(c *contender) error {
	s.Helper()
	select {
	case <-c.held:
		s.Fatal("granted")
	case err := <-c.failed:
		return err
	case <-s.ctx.Done():
		s.Fatal("neither granted nor told")
	}
	return nil
}

func (s *scene) counters(c *contender) recipes.Stats {
	s.Helper()
	return must[recipes.Stats](s.T)(c.session.Stats(s.ctx))
}

func (s *scene) release(h recipes.Hold) {
	s.Helper()
	if err := h.Release(s.ctx); err != nil {
		s.Fatal(err)
	}
}

// fallbacks waits until the contender has looked again, n times in all. What it
// asks meanwhile makes it a turn for others, and no sleep.
func (s *scene) fallbacks(c *contender, n int64) {
	s.Helper()
	for s.counters(c).Fallbacks < n {
		if _, _, err := s.raw.Exists(s.path); err != nil || s.ctx.Err() != nil {
			s.Fatalf("%d fallbacks, want %d (%v)", s.counters(c).Fallbacks, n, err)
		}
	}
}
