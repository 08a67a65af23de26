package zookeeper_test

import (
	"context"
	"encoding/binary"
	"net"
	"sync"
	"testing"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// go-zookeeper arms its watches anew after a reconnect, and that can come after
// whoever waited has looked again. What has changed since the old connection is
// no news then: here it is another's znode of a name that has come back.
func TestWatchesArmedAnewTellNothingOfTheTimeBefore(t *testing.T) {
	onBoth(t, func(s *scene) {
		elect := func(session recipes.Session, joined func(recipes.Place)) recipes.Election {
			return must[recipes.Election](s.T)(session.Election(s.path, recipes.ElectionConfig{Joined: joined}))
		}
		network := &lateWatches{}
		victim := must[recipes.Session](s.T)(zookeeper.OpenWith(network.dial)(s.ctx, recipes.SessionConfig{Servers: []string{s.addr}, MaxPacket: 64 << 10}))
		s.Cleanup(func() { victim.Close(context.Background()) })
		old := must[recipes.Leadership](s.T)(elect(s.session(), nil).Campaign(s.ctx, nil))
		observing, stop := context.WithCancel(s.ctx)
		<-must[<-chan recipes.Leader](s.T)(elect(victim, nil).Observe(observing)) // leaves a watch
		stop()

		network.cut()
		s.remove(old.Znode())
		leader := must[recipes.Leadership](s.T)(elect(s.session(), nil).Campaign(s.ctx, nil))
		if leader.Znode() != old.Znode() {
			s.Fatalf("%s and %s: the case was not met", leader.Znode(), old.Znode())
		}
		waits, won := make(chan struct{}), make(chan error, 1)
		candidate := elect(victim, func(recipes.Place) { close(waits) })
		go func() {
			_, err := candidate.Campaign(s.ctx, nil)
			won <- err
		}()
		<-waits
		network.letThrough(s.T)
		for range 20 { // round trips behind it
			if _, err := candidate.Candidates(s.ctx); err != nil {
				s.Fatal(err)
			}
		}
		select {
		case err := <-won:
			s.Fatalf("two lead (%v)", err)
		default:
		}
		if err := leader.Resign(s.ctx); err != nil {
			s.Fatal(err)
		}
		if err := <-won; err != nil {
			s.Error(err)
		}
	})
}

// lateWatches is a network on which go-zookeeper's setWatches is late.
type lateWatches struct {
	mu   sync.Mutex
	conn net.Conn // the present one
	late []byte
}

func (n *lateWatches) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.conn = conn
	return lateConn{conn, n}, nil
}

func (n *lateWatches) cut() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.conn.Close()
}

func (n *lateWatches) letThrough(t *testing.T) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.late == nil {
		t.Fatal("no setWatches: the case was not met")
	}
	if _, err := n.conn.Write(n.late); err != nil {
		t.Fatal(err)
	}
}

type lateConn struct {
	net.Conn
	network *lateWatches
}

func (c lateConn) Write(frame []byte) (int, error) {
	c.network.mu.Lock()
	defer c.network.mu.Unlock()
	const setWatches = 101
	own := func(xid int32) bool { return xid < -100 } // of requests past go-zookeeper
	if len(frame) >= 12 && binary.BigEndian.Uint32(frame[8:]) == setWatches && !own(int32(binary.BigEndian.Uint32(frame[4:]))) {
		c.network.late = append([]byte(nil), frame...)
		return len(frame), nil
	}
	return c.Conn.Write(frame)
}
