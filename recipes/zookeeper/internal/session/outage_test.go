package session_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// A replacement is a case in which one session changes a znode. Another one deletes the znode and
// creates it again, with the same version.
type replacement struct {
	name    string
	prepare func(t *testing.T, ctx context.Context, mine, theirs recipes.Client) (change, replace func() error)
}

func replacements() []replacement {
	key := func(change func(context.Context, recipes.Configuration, recipes.Revision) error) func(*testing.T, context.Context, recipes.Client, recipes.Client) (func() error, func() error) {
		return func(t *testing.T, ctx context.Context, mine, theirs recipes.Client) (func() error, func() error) {
			c, other := zktest.ConfigAt(t, mine, "/c"), zktest.ConfigAt(t, theirs, "/c")
			revision := must.Get(c.Set(ctx, "key", []byte("before"), recipes.NoRevision))(t)
			must.Get(other.Set(ctx, "receipt", nil, recipes.NoRevision))(t)
			return func() error { return change(ctx, c, revision) }, func() error {
				err := other.Delete(ctx, "key", recipes.AnyRevision)
				if err == nil || errors.Is(err, recipes.ErrNoNode) {
					_, err = other.Set(ctx, "key", []byte("theirs"), recipes.NoRevision)
				}
				return err
			}
		}
	}
	return []replacement{
		{"a key is set", key(func(ctx context.Context, c recipes.Configuration, r recipes.Revision) error {
			_, err := c.Set(ctx, "key", []byte("mine"), r)
			return err
		})},
		{"a key is deleted", key(func(ctx context.Context, c recipes.Configuration, r recipes.Revision) error {
			return c.Delete(ctx, "key", r)
		})},
		{"a name is unregistered", func(t *testing.T, ctx context.Context, mine, theirs recipes.Client) (func() error, func() error) {
			n, other := must.Get(mine.Names("/c"))(t), must.Get(theirs.Names("/c"))(t)
			must.Do(t, errors.Join(n.RegisterPersistent(ctx, "key", nil), other.RegisterPersistent(ctx, "receipt", nil)))
			token := must.Get(n.Lookup(ctx, "key"))(t).Token
			return func() error { return n.Unregister(ctx, "key", token) }, func() error {
				err := other.Unregister(ctx, "key", 0)
				if err == nil || errors.Is(err, recipes.ErrNoNode) {
					err = other.RegisterPersistent(ctx, "key", []byte("theirs"))
				}
				return err
			}
		}},
	}
}

// The connection is lost between the read and the write, or before the reply. Another client
// replaces the znode during the outage. The version is the same, so only another read
// distinguishes the two znodes.
func TestAfterAnOutageNoChangeIsMadeToASuccessor(t *testing.T) {
	for _, r := range replacements() {
		for cut, fault := range map[string]struct {
			at    zkserver.Op
			fault zkserver.Fault
			want  error
		}{
			"before the write is sent": {zkserver.OpExists, zkserver.Fault{CloseAfter: true}, recipes.ErrBadVersion},
			"and the write with it":    {zkserver.OpMulti, zkserver.Fault{CloseBefore: true}, recipes.ErrBadVersion},
			"and the reply with it":    {zkserver.OpMulti, zkserver.Fault{DropReply: true}, nil},
		} {
			t.Run(fmt.Sprintf("%s, lost %s", r.name, cut), func(t *testing.T) {
				srv := zktest.Embedded(t)
				mine, theirs, ctx := zktest.Open(t, srv), zktest.Open(t, srv), zktest.Bounded(t)
				change, replace := r.prepare(t, ctx, mine, theirs)
				var lost, done atomic.Bool
				srv.SetFault(func(q zkserver.Request) zkserver.Fault {
					switch {
					case q.SessionID != mine.ID() || done.Load() || q.Op == zkserver.OpPing:
					case !lost.Load() && q.Op == fault.at:
						lost.Store(true)
						return fault.fault
					case lost.Load(): // the first request after the outage
						done.Store(true)
						must.Report(t, replace())
					}
					return zkserver.Fault{}
				})
				err := change()
				if !done.Load() {
					t.Fatal("the case was not met")
				}
				if !errors.Is(err, fault.want) {
					t.Errorf("%v; want %v", err, fault.want)
				}
				if e, err := zktest.ConfigAt(t, theirs, "/c").Get(ctx, "key"); string(e.Value) != "theirs" {
					t.Errorf("what another client has made is %q, %v", e.Value, err)
				}
			})
		}
	}
}

// A counter has the receipt below its znode. A client that replaces the znode deletes that
// too, so nothing is added to the successor.
func TestAfterAnOutageNothingIsAddedToASuccessor(t *testing.T) {
	srv := zktest.Embedded(t)
	mine, ctx := zktest.Open(t, srv), zktest.Bounded(t)
	counter := must.Get(mine.Counter("/c", recipes.CounterConfig{}))(t)
	for range 3 {
		must.Get(counter.Add(ctx, 1))(t)
	}
	raw := zktest.Raw(t, srv.Addr())
	replace := func() {
		_, before, err := raw.Get("/c")
		if err != nil {
			t.Error(err)
			return
		}
		removeAll(t, raw, "/c")
		if _, err := raw.Create("/c", nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
			t.Error(err)
		}
		for range before.Version {
			if _, err := raw.Set("/c", []byte("100"), -1); err != nil {
				t.Error(err)
			}
		}
	}
	var lost, done atomic.Bool
	srv.SetFault(func(q zkserver.Request) zkserver.Fault {
		switch {
		case q.SessionID != mine.ID() || done.Load() || q.Op == zkserver.OpPing:
		case !lost.Load() && q.Op == zkserver.OpMulti:
			lost.Store(true)
			return zkserver.Fault{CloseBefore: true}
		case lost.Load(): // the first request after the outage
			done.Store(true)
			replace()
		}
		return zkserver.Fault{}
	})
	if _, err := counter.Add(ctx, 1); !errors.Is(err, recipes.ErrUnknownOutcome) || !done.Load() {
		t.Errorf("%v; want ErrUnknownOutcome (replaced: %v)", err, done.Load())
	}
	if now := must.Get(counter.Get(ctx))(t); now != 100 {
		t.Errorf("the successor is %d; want 100", now)
	}
}

// After a reconnect, go-zookeeper sets its watches again. If a waiter has read again before that,
// the event of a change before the read is stale: here it concerns an earlier znode of the same
// name. So go-zookeeper must have no watches.
func TestNoEventIsOlderThanAReconnect(t *testing.T) {
	zktest.OnBoth(t, func(s *zktest.Scene) {
		elect := func(session recipes.Client, joined func(recipes.Place)) recipes.Election {
			return must.Get(session.Election(s.Path, recipes.ElectionConfig{Joined: joined}))(s.T)
		}
		network := &rearmCounter{}
		victim := must.Get(zookeeper.Dialer(network.dial).Open(s.Ctx, recipes.SessionConfig{Servers: []string{s.Addr}, MaxPacket: 64 << 10}))(s.T)
		s.Cleanup(func() { victim.Close(context.Background()) })
		old := must.Get(elect(s.Session(), nil).Campaign(s.Ctx, nil))(s.T)
		observing, stop := context.WithCancel(s.Ctx)
		<-must.Get(elect(victim, nil).Observe(observing))(s.T) // leaves a watch
		stop()

		network.cut()
		s.Remove(old.Znode())
		leader := must.Get(elect(s.Session(), nil).Campaign(s.Ctx, nil))(s.T)
		if leader.Znode() != old.Znode() {
			s.Fatalf("%s and %s: the case was not met", leader.Znode(), old.Znode())
		}
		waits, won := make(chan struct{}), make(chan error, 1)
		candidate := elect(victim, func(recipes.Place) { close(waits) })
		go func() {
			_, err := candidate.Campaign(s.Ctx, nil)
			won <- err
		}()
		<-waits
		for range 20 { // round trips
			if _, err := candidate.Candidates(s.Ctx); err != nil {
				s.Fatal(err)
			}
		}
		select {
		case err := <-won:
			s.Fatalf("two lead (%v)", err)
		default:
		}
		if n := network.rearmed(); n != 0 {
			s.Errorf("go-zookeeper has set watches again, %d times", n)
		}
		must.Do(s, leader.Resign(s.Ctx))
		must.Report(s, <-won)
	})
}

// rearmCounter is a network that counts go-zookeeper's setWatches.
type rearmCounter struct {
	mu   sync.Mutex
	conn net.Conn // the current one
	seen int
}

func (n *rearmCounter) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.conn = conn
	return rearmingConn{conn, n}, nil
}

func (n *rearmCounter) cut() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.conn.Close()
}

func (n *rearmCounter) rearmed() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.seen
}

type rearmingConn struct {
	net.Conn
	network *rearmCounter
}

func (c rearmingConn) Write(frame []byte) (int, error) {
	const setWatches = 101
	own := func(xid int32) bool { return xid < -100 } // of the requests that bypass go-zookeeper
	if len(frame) >= 12 && binary.BigEndian.Uint32(frame[8:]) == setWatches && !own(int32(binary.BigEndian.Uint32(frame[4:]))) {
		c.network.mu.Lock()
		c.network.seen++
		c.network.mu.Unlock()
	}
	return c.Conn.Write(frame)
}
