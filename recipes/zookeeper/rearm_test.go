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

// go-zookeeper arms the watches that it has anew after a reconnect. That can come after
// whoever waited has looked again. What has changed since the old connection is no news
// then: here it is another's znode of a name that has come back. So it has none.
func TestNothingIsToldOfTheTimeBeforeAReconnect(t *testing.T) {
	onBoth(t, func(s *scene) {
		elect := func(session recipes.Session, joined func(recipes.Place)) recipes.Election {
			return must[recipes.Election](s.T)(session.Election(s.path, recipes.ElectionConfig{Joined: joined}))
		}
		network := &rearming{}
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
		for range 20 { // round trips
			if _, err := candidate.Candidates(s.ctx); err != nil {
				s.Fatal(err)
			}
		}
		select {
		case err := <-won:
			s.Fatalf("two lead (%v)", err)
		default:
		}
		if n := network.rearmed(); n != 0 {
			s.Errorf("go-zookeeper has armed watches anew, %d times", n)
		}
		if err := leader.Resign(s.ctx); err != nil {
			s.Fatal(err)
		}
		if err := <-won; err != nil {
			s.Error(err)
		}
	})
}

// rearming is a network that counts go-zookeeper's setWatches.
type rearming struct {
	mu   sync.Mutex
	conn net.Conn // the present one
	seen int
}

func (n *rearming) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.conn = conn
	return rearmingConn{conn, n}, nil
}

func (n *rearming) cut() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.conn.Close()
}

func (n *rearming) rearmed() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.seen
}

type rearmingConn struct {
	net.Conn
	network *rearming
}

func (c rearmingConn) Write(frame []byte) (int, error) {
	const setWatches = 101
	own := func(xid int32) bool { return xid < -100 } // of requests past go-zookeeper
	if len(frame) >= 12 && binary.BigEndian.Uint32(frame[8:]) == setWatches && !own(int32(binary.BigEndian.Uint32(frame[4:]))) {
		c.network.mu.Lock()
		c.network.seen++
		c.network.mu.Unlock()
	}
	return c.Conn.Write(frame)
}
