package zookeeper_test

import (
	"context"
	"errors"
	"fmt"
	gopath "path"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/google/uuid"
	"github.com/zkrecipes/zkrecipes/internal/ensemble/ensembletest"
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
	raw  *zk.Conn // of another hand
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

func (s *scene) session() recipes.Session {
	s.Helper()
	opened := must[recipes.Session](s.T)(zookeeper.Open(s.ctx, recipes.Config{Servers: []string{s.addr}, MaxPacket: 64 << 10}))
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

func (s *scene) counters(c *contender) recipes.Counters {
	s.Helper()
	return must[recipes.Counters](s.T)(c.session.Counters(s.ctx))
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

// The release is the grant: the next one sends nothing before it holds.
func TestAReleaseHandsOver(t *testing.T) {
	onBoth(t, func(s *scene) {
		first := s.hold(s.join())
		second := s.join()
		before := s.counters(second)
		s.release(first)
		hold := s.hold(second)
		cost := s.counters(second)
		if cost.Reads != before.Reads || cost.Writes != before.Writes || cost.Handoffs != 1 {
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

// A waiter that gives up, or dies, has not held: who comes after it goes on
// waiting, for the one ahead.
func TestOnlyAHolderHandsOver(t *testing.T) {
	leave := map[string]func(*scene, *contender){
		"cancelled":      func(s *scene, c *contender) { c.cancel(); s.failure(c) },
		"session closed": func(s *scene, c *contender) { c.session.Close(s.ctx); s.failure(c) },
		"deleted by hand": func(s *scene, c *contender) {
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

// Nobody else can write to a contender's znode, which would be taken for a
// release. Its deletion by hand still works.
func TestAnotherHandCannotWriteToAContender(t *testing.T) {
	onBoth(t, func(s *scene) {
		first := s.join()
		hold := s.hold(first)
		second := s.join()
		for _, c := range []*contender{first, second} {
			if _, err := s.raw.Set(c.place.Znode, []byte("unlock"), -1); !errors.Is(err, zk.ErrNoAuth) {
				t.Fatalf("set: %v", err)
			}
			if _, err := s.raw.SetACL(c.place.Znode, zk.WorldACL(zk.PermAll), -1); !errors.Is(err, zk.ErrNoAuth) {
				t.Fatalf("setACL: %v", err)
			}
		}
		other := must[recipes.Lock](t)(s.session().Lock(s.path, recipes.LockConfig{}))
		for _, c := range must[[]recipes.Contender](t)(other.Contenders(s.ctx)) {
			if len(c.Data) != 0 {
				t.Errorf("data %q", c.Data)
			}
		}
		if err := s.raw.Delete(first.place.Znode, -1); err != nil {
			t.Fatal(err)
		}
		s.release(s.hold(second))
		if err := hold.Release(s.ctx); !errors.Is(err, recipes.ErrNotHeld) {
			t.Errorf("release: %v", err)
		}
	})
}

// A contender with a name like ours that somebody else has made may be written
// to without being released.
func TestAStrangersZnodeIsNotTrusted(t *testing.T) {
	onBoth(t, func(s *scene) {
		s.release(s.hold(s.join())) // makes the path
		stranger, err := s.raw.Create(s.path+"/lock-", nil, zk.FlagEphemeral|zk.FlagSequence, zk.WorldACL(zk.PermAll))
		if err != nil {
			t.Fatal(err)
		}
		waiter := s.join()
		for s.counters(waiter).Fallbacks < 3 {
			if _, err := s.raw.Set(stranger, []byte("news"), -1); err != nil {
				t.Fatal(err)
			}
			select {
			case <-waiter.held:
				t.Fatal("granted")
			default:
			}
		}
		if err := s.raw.Delete(stranger, -1); err != nil {
			t.Fatal(err)
		}
		s.release(s.hold(waiter))
		if c := s.counters(waiter); c.Handoffs != 0 {
			t.Errorf("%+v", c)
		}
	})
}

// The waiter's own znode is deleted, and then its predecessor releases: it is the
// turn of who stands behind, and not of both.
func TestAWaiterWithoutItsZnodeIsNotHandedTheLock(t *testing.T) {
	onBoth(t, func(s *scene) {
		first := s.hold(s.join())
		second, third := s.join(), s.join()
		if err := s.raw.Delete(second.place.Znode, -1); err != nil {
			t.Fatal(err)
		}
		s.release(first)
		if err := s.failure(second); !errors.Is(err, recipes.ErrRemoved) {
			t.Errorf("told %v", err)
		}
		s.release(s.hold(third))
	})
}

// The line's path is removed by hand and made again: numbers start from 0 and
// names come back. Neither a stale hold's write nor a stale waiter is fooled.
func TestNamesThatComeBack(t *testing.T) {
	onBoth(t, func(s *scene) {
		// Two generations of three, with the same names.
		generation := func() (cs [3]*contender, hold recipes.Hold) {
			for i := range cs {
				cs[i] = s.join()
				if want := fmt.Sprintf("lock-%010d", i); gopath.Base(cs[i].place.Znode) != want {
					t.Fatalf("the name is %s, want %s", cs[i].place.Znode, want)
				}
			}
			return cs, s.hold(cs[0])
		}
		old, stale := generation()
		var ops []any
		for _, c := range old {
			ops = append(ops, &zk.DeleteRequest{Path: c.place.Znode, Version: -1})
		}
		ops = append(ops, &zk.DeleteRequest{Path: s.path, Version: -1})
		if _, err := s.raw.Multi(ops...); err != nil {
			t.Fatal(err)
		}
		for _, c := range old[1:] {
			if err := s.failure(c); !errors.Is(err, recipes.ErrRemoved) {
				t.Errorf("a waiter of the old line: %v", err)
			}
		}
		fresh, hold := generation()
		if stale.Znode() != hold.Znode() {
			t.Fatalf("%s and %s: the case was not met", stale.Znode(), hold.Znode())
		}
		if err := stale.Write(s.ctx, recipes.Create(s.path+"-written", nil)); !errors.Is(err, recipes.ErrNotHeld) {
			t.Errorf("a stale hold's write: %v", err)
		}
		if err := stale.Release(s.ctx); !errors.Is(err, recipes.ErrNotHeld) {
			t.Errorf("a stale hold's release: %v", err)
		}
		if err := hold.Write(s.ctx, recipes.Create(s.path+"-written", nil)); err != nil {
			t.Errorf("the new hold's write: %v", err)
		}
		s.release(hold)
		for _, c := range fresh[1:] {
			s.release(s.hold(c))
		}
	})
}

// A hold whose guarded writes work goes on working when somebody deletes what
// guards them.
func TestAGuardThatIsDeletedIsMadeAgain(t *testing.T) {
	onBoth(t, func(s *scene) {
		hold := s.hold(s.join())
		for range 2 {
			if err := hold.Write(s.ctx); err != nil {
				t.Fatal(err)
			}
			dir := s.path + "/guards-lock-9999999999"
			guards, _, err := s.raw.Children(dir)
			if err != nil || len(guards) != 1 {
				t.Fatalf("guards %v: %v", guards, err)
			}
			if err := s.raw.Delete(dir+"/"+guards[0], -1); err != nil {
				t.Fatal(err)
			}
		}
		if err := hold.Write(s.ctx); err != nil {
			t.Fatal(err)
		}
		s.release(hold)
	})
}

// Where the server does not take the session's identity, the lock works as by
// predecessor.
func TestAServerWithoutDigest(t *testing.T) {
	check := func(t *testing.T, addr string) {
		s := &scene{T: t, ctx: bounded(t), addr: addr, path: "/digest"}
		first, second := s.join(), s.join()
		for _, c := range []*contender{first, second} {
			if !strings.Contains(c.place.Znode, "_c_") {
				t.Errorf("the place is %s", c.place.Znode)
			}
			hold := s.hold(c)
			if err := hold.Write(s.ctx); err != nil {
				t.Error(err)
			}
			s.release(hold)
			if n := s.counters(c).Fallbacks; n == 0 {
				t.Error("not counted")
			}
		}
	}
	t.Run("embedded", func(t *testing.T) {
		srv := must[*zkserver.Server](t)(zkserver.Listen(zkserver.Config{DisableDigest: true}))
		t.Cleanup(func() { srv.Close() })
		check(t, srv.Addr())
	})
	t.Run("real", func(t *testing.T) {
		cfg := ensembletest.Quick(1)
		cfg.SystemProperties = map[string]string{"zookeeper.DigestAuthenticationProvider.enabled": "false"}
		check(t, ensembletest.Start(t, cfg).Addrs()[0])
	})
}

// Where the server hashes digest credentials otherwise, the identity is not the
// one that the znodes name: nobody may write, so nothing is handed over, and
// everything else works.
func TestAServerWithAnotherDigestAlgorithm(t *testing.T) {
	cfg := ensembletest.Quick(1)
	cfg.SystemProperties = map[string]string{"zookeeper.DigestAuthenticationProvider.digestAlg": "SHA-256"}
	s := &scene{T: t, ctx: bounded(t), addr: ensembletest.Start(t, cfg).Addrs()[0], path: "/digest"}
	first, second := s.join(), s.join()
	s.release(s.hold(first))
	s.release(s.hold(second))
	if c := s.counters(second); c.Handoffs != 0 || c.Fallbacks == 0 {
		t.Errorf("%+v", c)
	}
	again := s.joinWith(second.session, recipes.Handoff)
	if !strings.Contains(again.place.Znode, "_c_") {
		t.Errorf("the place is %s", again.place.Znode)
	}
	s.release(s.hold(again))
}

// After a lost reply the own place is found among those that are younger than
// the creation, however many stand in line.
func TestALostPlaceIsFoundAmongTheNewest(t *testing.T) {
	srv := embedded(t)
	s := &scene{T: t, ctx: bounded(t), addr: srv.Addr(), path: "/newest"}
	first := s.join()
	crowd := s.session()
	for range 40 {
		s.joinWith(crowd, recipes.Handoff)
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
	const each, turns = 3, 40
	addrs := ensembletest.Start(t, ensembletest.Quick(3)).Addrs()
	s := &scene{T: t, ctx: bounded(t), path: "/apart"}
	var holders atomic.Int32
	var last atomic.Int64
	var handoffs atomic.Int64
	var all sync.WaitGroup
	for i := range each * len(addrs) {
		s.addr = addrs[i%len(addrs)]
		session := s.session()
		l := must[recipes.Lock](t)(session.Lock(s.path, recipes.LockConfig{Strategy: recipes.Handoff}))
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
			counters, err := session.Counters(s.ctx)
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
