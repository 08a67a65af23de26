package session_test

import (
	"context"
	"encoding/binary"
	"net"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/ensemble"
	"github.com/zkrecipes/zkrecipes/internal/testing/ensembletest"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/testall"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// PITFALLS 61 on real servers: the holder's follower is killed just after it has answered a ping.
// The holder connects only to that follower, and the next contender to the leader.
func TestAHolderWhoseRealFollowerDies(t *testing.T) {
	testall.Require(t) // follower_test.go kills an in-process follower at every phase
	t.Parallel()       // waits for servers
	cfg := ensembletest.Quick(3)
	cfg.TickTime = 500 * time.Millisecond
	servers := ensembletest.Start(t, cfg)
	leader := must.Get(servers.Leader(t.Context()))(t)
	follower := servers.Server(0)
	if follower == leader {
		follower = servers.Server(1)
	}
	connect := func(s *ensemble.Server, dial func(context.Context, string, string) (net.Conn, error)) recipes.Client {
		session := must.Get(zookeeper.OpenWith(dial)(t.Context(), recipes.SessionConfig{
			Servers: []string{s.Addr()}, SessionTimeout: 10 * time.Second, MaxPacket: 64 << 10,
		}))(t)
		t.Cleanup(func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second) // clean-up: the servers may be frozen
			defer cancel()
			session.Close(ctx)
		})
		return session
	}
	pinged, granted := make(chan struct{}, 1), make(chan time.Time, 1)
	holder := connect(follower, func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := (&net.Dialer{}).DialContext(ctx, network, address)
		return &pingTeller{Conn: c, pinged: pinged}, err
	})
	hold, joined := zktest.Acquire(t, holder), make(chan struct{})
	l := must.Get(connect(leader, nil).Lock("/deadline", recipes.LockConfig{Joined: func(recipes.Place) { close(joined) }}))(t)
	go func() {
		_, err := l.Acquire(t.Context())
		granted <- time.Now()
		must.Report(t, err)
	}()
	<-joined
	for range 2 {
		<-pinged
	}
	lost := hold.Done()
	must.Do(t, follower.Kill())
	killed := time.Now()
	<-lost
	closed := time.Now()
	next := <-granted
	t.Logf("Done closed %v after the kill, the next contender was granted %v after it", closed.Sub(killed), next.Sub(killed))
	if !closed.Before(next) {
		t.Errorf("Done closed %v after the next contender was granted", closed.Sub(next))
	}
}

// pingTeller reports each answer to a ping that arrives in one read. All of them do while no other
// request is sent.
type pingTeller struct {
	net.Conn
	pinged chan struct{}
}

func (c *pingTeller) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	const ping = -2
	if n >= 8 && int32(binary.BigEndian.Uint32(p[4:])) == ping {
		select {
		case c.pinged <- struct{}{}:
		default:
		}
	}
	return n, err
}
