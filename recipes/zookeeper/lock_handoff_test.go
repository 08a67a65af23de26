package zookeeper_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/google/uuid"
	"github.com/zkrecipes/zkrecipes/internal/testing/ensembletest"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/watchdog"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// The release is the grant: the next contender sends nothing before it holds, while its
// session's proof is young.
func TestAReleaseHandsOver(t *testing.T) {
	onBoth(t, func(s *scene) {
		first := s.hold(s.join())
		second := s.join()
		before := s.counters(second)
		s.release(first)
		hold := s.hold(second)
		cost := s.counters(second)
		if cost.Reads != before.Reads || cost.ByKind["sync"] != before.ByKind["sync"] || cost.Writes != before.Writes || cost.Handoffs != 1 {
			t.Errorf("the grant cost %+v after %+v", cost, before)
		}
		if hold.Token() <= first.Token() {
			t.Errorf("token %d after %d", hold.Token(), first.Token())
		}
		if err := hold.Write(s.ctx); err != nil {
			t.Error(err)
		}
		s.release(hold)
	})
}

// A waiter that gives up, or dies, has not held. The contender behind it goes on
// waiting, for the one ahead.
func TestOnlyAHolderHandsOver(t *testing.T) {
	leave := map[string]func(*scene, *contender){
		"cancelled":      func(s *scene, c *contender) { c.cancel(); s.failure(c) },
		"session closed": func(s *scene, c *contender) { c.session.Close(s.ctx); s.failure(c) },
		"deleted by another client": func(s *scene, c *contender) {
			if err := s.raw.Delete(c.place.Znode, -1); err != nil {
				s.Fatal(err)
			}
			if err := s.failure(c); !errors.Is(err, recipes.ErrRemoved) {
				s.Errorf("told %v", err)
			}
		},
	}
	for name, leaves := range leave {
		t.Run(name, func(t *testing.T) {
			onBoth(t, func(s *scene) {
				first := s.hold(s.join())
				second, third := s.join(), s.join()
				leaves(s, second)
				s.fallbacks(third, 1)
				select {
				case <-third.held:
					t.Fatal("granted while the first holds")
				default:
				}
				s.release(first)
				s.release(s.hold(third))
			})
		})
	}
}

// A holder that dies does not hand over, and the next one finds itself first.
func TestAHolderThatDies(t *testing.T) {
	onBoth(t, func(s *scene) {
		first := s.join()
		s.hold(first)
		second := s.join()
		if err := first.session.Close(s.ctx); err != nil {
			t.Fatal(err)
		}
		s.release(s.hold(second))
		if c := s.counters(second); c.Handoffs != 0 || c.Fallbacks == 0 {
			t.Errorf("%+v", c)
		}
	})
}

// After a lost reply a contender's place is found among those that are younger than the
// creation, however many stand in line.
func TestALostPlaceIsFoundAmongTheNewest(t *testing.T) {
	srv := embedded(t)
	s := &scene{T: t, ctx: bounded(t), addr: srv.Addr(), path: "/newest"}
	first := s.join()
	many := s.session()
	for range 40 {
		s.joinWith(many, recipes.Handoff)
	}
	victim := s.session()
	if err := victim.(interface {
		Sync(context.Context, string) error
	}).Sync(s.ctx, s.path); err != nil { // it has seen how far the server is
		t.Fatal(err)
	}
	lost, reads := false, 0
	srv.SetFault(func(r zkserver.Request) zkserver.Fault {
		switch {
		case r.SessionID != victim.ID():
		case r.Op == zkserver.OpGetData:
			reads++
		case r.Op == zkserver.OpCreate2 && !lost:
			lost = true
			return zkserver.Fault{DropReply: true}
		}
		return zkserver.Fault{}
	})
	c := s.joinWith(victim, recipes.Handoff)
	if !lost || strings.Contains(c.place.Znode, "_c_") {
		t.Fatalf("the place is %s: the case was not met", c.place.Znode)
	}
	if reads != 2 { // itself, and its predecessor
		t.Errorf("%d reads", reads)
	}
	s.release(s.hold(first))
}

// Events come from the server that a session is connected to, which may be behind
// the others. Nobody holds before the one ahead has released.
func TestContendersAtDifferentServers(t *testing.T) {
	t.Parallel() // waits for servers
	const each, turns = 3, 40
	addrs := ensembletest.Start(t, ensembletest.Quick(3)).Addrs()
	s := &scene{T: t, ctx: bounded(t), path: "/lagging"}
	var holders atomic.Int32
	var last atomic.Int64
	var handoffs atomic.Int64
	var all sync.WaitGroup
	for i := range each * len(addrs) {
		s.addr = addrs[i%len(addrs)]
		session := s.session()
		l := must.Get(session.Lock(s.path, recipes.LockConfig{Strategy: recipes.Handoff}))(t)
		all.Go(func() {
			for range turns {
				hold, err := l.Acquire(s.ctx)
				if err != nil {
					t.Error(err)
					return
				}
				if n := holders.Add(1); n != 1 {
					t.Errorf("%d hold", n)
				}
				if before := last.Swap(int64(hold.Token())); before >= int64(hold.Token()) {
					t.Errorf("token %d after %d", hold.Token(), before)
				}
				holders.Add(-1)
				if err := hold.Release(s.ctx); err != nil {
					t.Error(err)
					return
				}
			}
			counters, err := session.Stats(s.ctx)
			if err != nil {
				t.Error(err)
			}
			handoffs.Add(counters.Handoffs)
		})
	}
	all.Wait()
	if all := int64(each * len(addrs) * turns); handoffs.Load() < all/2 {
		t.Errorf("%d of %d turns were handed over", handoffs.Load(), all)
	}
}

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
	raw, _, err := zk.Connect([]string{srv.Addr()}, watchdog.Patience, zk.WithLogInfo(false))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(raw.Close)
	f(&scene{T: t, ctx: bounded(t), addr: srv.Addr(), path: "/line", raw: raw})
}

func (s *scene) session() recipes.Client {
	s.Helper()
	opened := must.Get(zookeeper.Open(s.ctx, recipes.SessionConfig{Servers: []string{s.addr}, MaxPacket: 64 << 10}))(s.T)
	s.Cleanup(func() { opened.Close(context.Background()) })
	return opened
}

// contender stands in line.
type contender struct {
	session recipes.Client
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

func (s *scene) joinWith(session recipes.Client, strategy recipes.Strategy) *contender {
	s.Helper()
	ctx, cancel := context.WithCancel(s.ctx)
	s.Cleanup(cancel)
	c := &contender{session: session, cancel: cancel, held: make(chan recipes.Hold, 1), failed: make(chan error, 1)}
	joined := make(chan recipes.Place, 1)
	l := must.Get(session.Lock(s.path, recipes.LockConfig{Strategy: strategy, Joined: func(p recipes.Place) { joined <- p }}))(s.T)
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
	return must.Get(c.session.Stats(s.ctx))(s.T)
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
