package lock_test

import (
	"bytes"
	"context"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/testing/ensembletest"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// If the server does not accept the session's identity, the lock works as with the strategy
// Predecessor.
func TestAServerWithoutDigest(t *testing.T) {
	check := func(t *testing.T, addr string) {
		s := &zktest.Scene{T: t, Ctx: zktest.Bounded(t), Addr: addr, Path: "/digest"}
		first, second := s.Join(), s.Join()
		for _, c := range []*zktest.Contender{first, second} {
			if !strings.Contains(c.Place.Znode, "_c_") {
				t.Errorf("the place is %s", c.Place.Znode)
			}
			hold := s.Hold(c)
			must.Report(t, hold.Write(s.Ctx))
			s.Release(hold)
			if n := s.Counters(c).Fallbacks; n == 0 {
				t.Error("the fallback was not counted")
			}
		}
	}
	t.Run("embedded", func(t *testing.T) {
		srv := must.Get(zkserver.Listen(zkserver.Config{DisableDigest: true}))(t)
		t.Cleanup(func() { srv.Close() })
		check(t, srv.Addr())
	})
	t.Run("real", func(t *testing.T) {
		cfg := ensembletest.Quick(1)
		cfg.SystemProperties = map[string]string{"zookeeper.DigestAuthenticationProvider.enabled": "false"}
		check(t, ensembletest.Start(t, cfg).Addrs()[0])
	})
}

// If the server hashes digest credentials differently, the session's identity is not the one in
// the ACLs. Then no contender may write to another's znode, and there is no handoff. Everything
// else works.
func TestAServerWithAnotherDigestAlgorithm(t *testing.T) {
	cfg := ensembletest.Quick(1)
	cfg.SystemProperties = map[string]string{"zookeeper.DigestAuthenticationProvider.digestAlg": "SHA-256"}
	s := &zktest.Scene{T: t, Ctx: zktest.Bounded(t), Addr: ensembletest.Start(t, cfg).Addrs()[0], Path: "/digest"}
	first, second := s.Join(), s.Join()
	s.Release(s.Hold(first))
	s.Release(s.Hold(second))
	if c := s.Counters(second); c.Handoffs != 0 || c.Fallbacks == 0 {
		t.Errorf("granted by %+v; want fallbacks only", c)
	}
	again := s.JoinWith(second.Session, recipes.Handoff)
	if !strings.Contains(again.Place.Znode, "_c_") {
		t.Errorf("the place is %s", again.Place.Znode)
	}
	s.Release(s.Hold(again))
}

// After a reconnect, the server no longer accepts the session's identity. The places that the
// session has already created still work.
func TestAServerThatRefusesTheIdentityLater(t *testing.T) {
	zktest.OnBoth(t, func(s *zktest.Scene) {
		var refuse atomic.Bool
		var present net.Conn
		var mu sync.Mutex
		dial := func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
			mu.Lock()
			defer mu.Unlock()
			present = conn
			return refusedConn{conn, &refuse}, err
		}
		session := must.Get(zookeeper.Dialer(dial).Open(s.Ctx, recipes.SessionConfig{Servers: []string{s.Addr}, MaxPacket: 64 << 10}))(s.T)
		s.Cleanup(func() { session.Close(context.Background()) })
		hold, waiter, last := s.Hold(s.JoinWith(session, recipes.Handoff)), s.JoinWith(session, recipes.Handoff), s.Join()
		refuse.Store(true)
		mu.Lock()
		present.Close()
		mu.Unlock()
		lost := hold.Done()
		s.Release(hold)
		<-lost
		s.Release(s.Hold(waiter))
		s.Release(s.Hold(last))
		if again := s.JoinWith(session, recipes.Handoff); !strings.Contains(again.Place.Znode, "_c_") {
			s.Errorf("the place is %s", again.Place.Znode)
		}
	})
}

// refusedConn replaces the credentials by some that no server accepts.
type refusedConn struct {
	net.Conn
	refuse *atomic.Bool
}

func (c refusedConn) Write(frame []byte) (int, error) {
	if c.refuse.Load() {
		frame = bytes.Replace(frame, []byte("\x00\x00\x00\x06digest\x00"), []byte("\x00\x00\x00\x06nobody\x00"), 1)
	}
	return c.Conn.Write(frame)
}

// Events come from the server to which a session is connected, and it may lag. No contender
// holds before the one ahead has released.
func TestContendersAtDifferentServers(t *testing.T) {
	t.Parallel() // waits for servers
	const each, turns = 3, 40
	addrs := ensembletest.Start(t, ensembletest.Quick(3)).Addrs()
	s := &zktest.Scene{T: t, Ctx: zktest.Bounded(t), Path: "/lagging"}
	var holders atomic.Int32
	var last atomic.Int64
	var handoffs atomic.Int64
	var all sync.WaitGroup
	var sessions []recipes.Client // a contender must not finish its turns before the last one joins
	for i := range each * len(addrs) {
		s.Addr = addrs[i%len(addrs)]
		sessions = append(sessions, s.Session())
	}
	for _, session := range sessions {
		l := must.Get(session.Lock(s.Path, recipes.LockConfig{Strategy: recipes.Handoff}))(t)
		all.Go(func() {
			for range turns {
				hold, err := l.Acquire(s.Ctx)
				if err != nil {
					t.Error(err)
					return
				}
				if n := holders.Add(1); n != 1 {
					t.Errorf("%d contenders hold the lock", n)
				}
				if before := last.Swap(int64(hold.Token())); before >= int64(hold.Token()) {
					t.Errorf("token %d after %d", hold.Token(), before)
				}
				holders.Add(-1)
				if err := hold.Release(s.Ctx); err != nil {
					t.Error(err)
					return
				}
			}
			counters, err := session.Stats(s.Ctx)
			must.Report(t, err)
			handoffs.Add(counters.Handoffs)
		})
	}
	all.Wait()
	if all := int64(each * len(addrs) * turns); handoffs.Load() < all/2 {
		t.Errorf("%d of %d turns were handoffs", handoffs.Load(), all)
	}
}

// Sessions without a contender at a path may write its data.
func TestTheDataOfAPathMayBeWritten(t *testing.T) {
	zktest.OnBoth(t, func(s *zktest.Scene) {
		hold := s.Hold(s.Join())       // has created the path
		s.Make(s.Path+"/keep", nil, 0) // an empty container would be deleted
		s.Release(hold)
		semaphore := must.Get(zktest.OpenAt(s.T, s.Addr).Semaphore(s.Path, recipes.SemaphoreConfig{Permits: 2}))(s.T)
		if err := must.Get(semaphore.Acquire(s.Ctx))(s.T).Release(s.Ctx); err != nil { // Acquire has written the permits
			s.Error(err)
		}
		must.Report(s, must.Get(must.Get(zktest.OpenAt(s.T, s.Addr).Lock(s.Path+"-clear", recipes.LockConfig{Strategy: recipes.Predecessor}))(s.T).Acquire(s.Ctx))(s.T).Write(s.Ctx, recipes.Set(s.Path, []byte("0"), recipes.AnyVersion)))
		for _, write := range []func(recipes.Client) error{
			func(other recipes.Client) error {
				_, err := must.Get(other.Counter(s.Path, recipes.CounterConfig{}))(s.T).Add(s.Ctx, 1)
				return err
			},
			func(other recipes.Client) error {
				hold := must.Get(must.Get(other.Lock(s.Path+"-other", recipes.LockConfig{Strategy: recipes.Predecessor}))(s.T).Acquire(s.Ctx))(s.T)
				return hold.Write(s.Ctx, recipes.Set(s.Path, []byte("1"), recipes.AnyVersion))
			},
		} {
			must.Report(s, write(zktest.OpenAt(s.T, s.Addr)))
		}
	})
}
