package zookeeper_test

import (
	"bytes"
	"context"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// A session goes on with a server that does not take its identity any more, and
// has places from before.
func TestAServerThatRefusesTheIdentityLater(t *testing.T) {
	onBoth(t, func(s *scene) {
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
		session := must[recipes.Session](s.T)(zookeeper.OpenWith(dial)(s.ctx, recipes.SessionConfig{Servers: []string{s.addr}, MaxPacket: 64 << 10}))
		s.Cleanup(func() { session.Close(context.Background()) })
		hold, waiter, last := s.hold(s.joinWith(session, recipes.Handoff)), s.joinWith(session, recipes.Handoff), s.join()
		refuse.Store(true)
		mu.Lock()
		present.Close()
		mu.Unlock()
		lost := hold.Done()
		s.release(hold)
		<-lost
		s.release(s.hold(waiter))
		s.release(s.hold(last))
		if again := s.joinWith(session, recipes.Handoff); !strings.Contains(again.place.Znode, "_c_") {
			s.Errorf("the place is %s", again.place.Znode)
		}
	})
}

// refusedConn gives credentials that no server takes.
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
