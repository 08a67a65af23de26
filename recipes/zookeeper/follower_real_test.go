package zookeeper_test

import (
	"context"
	"encoding/binary"
	"net"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/ensemble"
	"github.com/zkrecipes/zkrecipes/internal/ensemble/ensembletest"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// PITFALLS 61 on real servers: the holder's follower is killed just after it has
// answered a ping.
func TestAHolderWhoseRealFollowerDies(t *testing.T) {
	cfg := ensembletest.Quick(3)
	cfg.TickTime = 500 * time.Millisecond
	servers := ensembletest.Start(t, cfg)
	leader, err := servers.Leader(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var follower *ensemble.Server
	for _, s := range servers.Servers() {
		if s != leader {
			follower = s
		}
	}
	pinged := make(chan struct{}, 1)
	connect := func(s *ensemble.Server, dial func(context.Context, string, string) (net.Conn, error)) recipes.Session {
		session, err := zookeeper.OpenWith(dial)(t.Context(), recipes.SessionConfig{
			Servers: []string{s.Addr()}, SessionTimeout: 10 * time.Second, MaxPacket: 64 << 10,
		})
		if err != nil {
			t.Fatal(err)
		}
		return session
	}
	holder := connect(follower, func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := (&net.Dialer{}).DialContext(ctx, network, address)
		return &pingTeller{Conn: c, pinged: pinged}, err
	})
	waiter := connect(leader, nil)
	hold := acquire(t, holder)
	joined := make(chan struct{})
	granted := make(chan time.Time, 1)
	l := must[recipes.Lock](t)(waiter.Lock("/deadline", recipes.LockConfig{Joined: func(recipes.Place) { close(joined) }}))
	go func() {
		_, err := l.Acquire(t.Context())
		granted <- time.Now()
		if err != nil {
			t.Error(err)
		}
	}()
	<-joined
	lost := hold.Done()
	for range 2 {
		<-pinged
	}
	if err := follower.Kill(); err != nil {
		t.Fatal(err)
	}
	killed := time.Now()
	<-lost
	told := time.Now()
	next := <-granted
	t.Logf("told %v after the kill, the next granted %v after it", told.Sub(killed), next.Sub(killed))
	if !told.Before(next) {
		t.Errorf("told %v after the next was granted", told.Sub(next))
	}
	waiter.Close(t.Context())
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	holder.Close(ctx)
}

// pingTeller tells of each answer to a ping that comes in one piece, as all do
// while nothing else is asked.
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
