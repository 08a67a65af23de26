package session_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/ensemble"
	"github.com/zkrecipes/zkrecipes/internal/testing/ensembletest"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// real is an ensemble of three servers. The holder connects only to one follower, and the next
// contender to the leader.
type real struct {
	dir              string
	leader, follower *ensemble.Server
	pinged           chan struct{} // after an answer to a ping of the holder's
	holder, waiter   recipes.Client
	hold             recipes.Hold
	granted          chan time.Time // to the waiter
}

func onRealFollower(t *testing.T, timeout time.Duration) *real {
	cfg := ensembletest.Quick(3)
	cfg.TickTime = 500 * time.Millisecond
	cfg.Dir = t.TempDir()
	servers := ensembletest.Start(t, cfg)
	r := &real{dir: cfg.Dir, pinged: make(chan struct{}, 1), granted: make(chan time.Time, 1)}
	var err error
	if r.leader, err = servers.Leader(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, s := range servers.Servers() {
		if s != r.leader {
			r.follower = s
		}
	}
	connect := func(s *ensemble.Server, dial func(context.Context, string, string) (net.Conn, error)) recipes.Client {
		session, err := zookeeper.Dialer(dial).Open(t.Context(), recipes.SessionConfig{
			Servers: []string{s.Addr()}, SessionTimeout: timeout, MaxPacket: 64 << 10,
		})
		must.Do(t, err)
		t.Cleanup(func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second) // clean-up: the servers may be frozen
			defer cancel()
			session.Close(ctx)
		})
		return session
	}
	r.holder = connect(r.follower, func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := (&net.Dialer{}).DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &pingTeller{Conn: c, pinged: r.pinged}, nil
	})
	r.waiter = connect(r.leader, nil)
	r.hold = zktest.Acquire(t, r.holder)
	joined := make(chan struct{})
	l := must.Get(r.waiter.Lock("/deadline", recipes.LockConfig{Joined: func(recipes.Place) { close(joined) }}))(t)
	go func() {
		_, err := l.Acquire(t.Context())
		r.granted <- time.Now()
		if err != nil {
			t.Error(err)
		}
	}()
	<-joined
	return r
}

// kill ends the follower, and checks that the holder's Done closes before the next contender is
// granted.
func (r *real) kill(t *testing.T) {
	lost := r.hold.Done()
	must.Do(t, r.follower.Kill())
	killed := time.Now()
	<-lost
	closed := time.Now()
	next := <-r.granted
	t.Logf("Done closed %v after the kill, the next contender was granted %v after it", closed.Sub(killed), next.Sub(killed))
	if !closed.Before(next) {
		t.Errorf("Done closed %v after the next contender was granted", closed.Sub(next))
	}
}

// PITFALLS 61 on real servers: the holder's follower is killed just after it has
// answered a ping.
func TestAHolderWhoseRealFollowerDies(t *testing.T) {
	t.Parallel() // waits for servers
	r := onRealFollower(t, 10*time.Second)
	for range 2 {
		<-r.pinged
	}
	r.kill(t)
}

// PITFALLS 62 on real servers: the follower comes back with a smaller
// maxSessionTimeout.
func TestARealFollowerGrantsASmallerTimeout(t *testing.T) {
	t.Parallel() // waits for servers
	const before, after = 30 * time.Second, 4 * time.Second
	r := onRealFollower(t, before)
	files, err := filepath.Glob(filepath.Join(r.dir, "*", "server*", "zoo.cfg"))
	if err != nil || len(files) != 3 {
		t.Fatalf("configurations of servers: %q, %v", files, err)
	}
	for _, file := range files {
		text := must.Get(os.ReadFile(file))(t)
		smaller := regexp.MustCompile(`(?m)^maxSessionTimeout=.*$`).ReplaceAll(text, fmt.Appendf(nil, "maxSessionTimeout=%d", after.Milliseconds()))
		must.Do(t, os.WriteFile(file, smaller, 0o600))
	}
	must.Do(t, r.follower.Restart(t.Context()))
	for r.holder.State() != recipes.Connected || r.holder.Timeout() != after {
		select {
		case <-r.pinged: // a server has answered
		case <-r.holder.Done():
			t.Fatal(r.holder.Err())
		}
	}
	r.kill(t)
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
