package zookeeper_test

import (
	"context"
	"encoding/binary"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// PITFALLS 71 and 73: a follower answers the request that creates a contender's znode, and is
// cut off from the leader at once. It still answers pings. When the leader expires the
// session, the session must hold nothing. That is tested for each recipe that waits, and for
// callbacks of the contender that take different times before the grant.
func TestNoGrantOutlivesTheSessionAtTheLeader(t *testing.T) {
	type enter = func(ctx context.Context, s recipes.Client, joined func(recipes.Place)) (recipes.Grant, error)
	entrances := map[string]enter{
		"delivery": func(ctx context.Context, s recipes.Client, _ func(recipes.Place)) (recipes.Grant, error) {
			return zktest.QueueOf(t, s, "/queue", recipes.QueueConfig{}).Receive(ctx)
		},
	}
	for _, w := range append(ways(moved), wayTo("priority lock for reading", ""), wayTo("semaphore", recipes.Curator), wayTo("name", ""), wayTo("membership", "")) {
		entrances[w.Name] = func(ctx context.Context, s recipes.Client, joined func(recipes.Place)) (recipes.Grant, error) {
			return w.enter(ctx, s, "/it", joined)
		}
	}
	const timeout = 10 * time.Second
	step := 2200 * time.Millisecond
	if thorough {
		step /= 2
	}
	for name, enter := range entrances {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			granted := 0
			for phase := time.Duration(0); phase < timeout/2; phase += step {
				for _, blocks := range []time.Duration{0, timeout / 10, timeout / 3, timeout / 2, timeout * 3 / 4} {
					for creation := 1; creation <= 3; creation++ { // the cut comes at the creation of a waiting or of a holding znode
						for _, holds := range []bool{false, true} {
							zktest.Bubble(t, func(t *testing.T) {
								if cutOffAtACreation(t, timeout, phase, blocks, creation, holds, enter) {
									granted++
								}
							})
						}
					}
				}
			}
			t.Logf("%d were granted", granted)
		})
	}
}

func cutOffAtACreation(t *testing.T, timeout, phase, blocks time.Duration, creation int, holds bool, enter func(context.Context, recipes.Client, func(recipes.Place)) (recipes.Grant, error)) (granted bool) {
	srv := zkserver.New(zkserver.Config{})
	defer srv.Close()
	setUp := zktest.LinkTo(srv.ServeConn).Open(t, timeout)
	q := zktest.QueueOf(t, setUp, "/queue", recipes.QueueConfig{})
	must.Get(q.Put(t.Context(), nil))(t) // creates the parent of claims too
	must.Do(t, must.Get(q.Receive(t.Context()))(t).Return(t.Context()))
	if _, err := enter(t.Context(), setUp, nil); err != nil { // creates the paths
		t.Fatal(err)
	}
	must.Do(t, setUp.Close(t.Context()))
	follower := srv.Follower()
	theirs := zktest.LinkTo(follower.ServeConn)
	watch := &creations{answered: func() { theirs.Lead(nil); follower.CutOff() }, left: 1 << 30}
	theirs.Wrap = func(c net.Conn) net.Conn { return watchedConn{c, watch} }
	s := theirs.Open(t, timeout)
	if holds { // the session renews its proof
		must.Get(must.Get(s.Group("/other", recipes.GroupConfig{}))(t).Join(t.Context(), nil))(t)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	time.Sleep(3*timeout + phase)
	watch.expect(creation)
	got := make(chan recipes.Grant, 1)
	go func() {
		g, err := enter(ctx, s, func(recipes.Place) { time.Sleep(blocks) })
		if err == nil {
			got <- g
		}
		close(got)
	}()
	var g recipes.Grant
	for end := time.Now().Add(4 * timeout); time.Now().Before(end); time.Sleep(50 * time.Millisecond) { // virtual
		if g == nil {
			select {
			case g = <-got:
				granted = granted || g != nil
			default:
			}
		}
		if g != nil && !zktest.Exists(srv, g.Znode()) && g.Err() == nil {
			t.Errorf("cut off after %v, the callback took %v: %s is held, but the leader has expired its session", phase, blocks, g.Znode())
			break
		}
	}
	cancel()
	follower.Crash()
	s.Close(t.Context())
	time.Sleep(2 * time.Second) // go-zookeeper's Close waits for one second
	return granted
}

// creations calls answered once, when the first reply arrives after that many creations.
type creations struct {
	answered func()
	once     sync.Once
	mu       sync.Mutex
	left     int
}

func (c *creations) expect(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left = n
}

// watchedConn is a connection whose creations are counted.
type watchedConn struct {
	net.Conn
	creations *creations
}

func (c watchedConn) Write(frame []byte) (int, error) {
	const create, multi, create2 = 1, 14, 15
	if len(frame) >= 12 {
		switch op := binary.BigEndian.Uint32(frame[8:]); op {
		case create, multi, create2:
			c.creations.mu.Lock()
			c.creations.left--
			c.creations.mu.Unlock()
		}
	}
	return c.Conn.Write(frame)
}

func (c watchedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.creations.mu.Lock()
	met := c.creations.left <= 0
	c.creations.mu.Unlock()
	if n > 0 && met {
		c.creations.once.Do(c.creations.answered)
	}
	return n, err
}

// A contender that has to wait sends a sync at once if its proof will soon be too old. So a
// grant after a short wait finds its proof ready.
func TestAWaiterAsksTheLeaderAhead(t *testing.T) {
	for _, w := range ways(moved | waited) {
		t.Run(w.Name, func(t *testing.T) {
			zktest.OnVirtualTime(t, func(ctx context.Context, t *testing.T, srv *zkserver.Server, s recipes.Client) {
				must.Get(w.enter(ctx, zktest.OpenVirtual(t, srv), "/line", nil))(t)
				for _, tt := range []struct {
					age  time.Duration // values are hundredths of the timeout
					want int64
				}{{20, 0}, {60, 1}} {
					s := zktest.OpenVirtual(t, srv)
					time.Sleep(s.Timeout() * tt.age / 100)
					waiting, giveUp := context.WithCancel(ctx)
					go func() { _, _ = w.enter(waiting, s, "/line", nil) }()
					synctest.Wait()
					if n := must.Get(s.Stats(ctx))(t).ByKind["sync"]; n != tt.want {
						t.Errorf("at %d %% of the timeout after its proof, the contender sent %d syncs; want %d", tt.age, n, tt.want)
					}
					giveUp()
					synctest.Wait()
				}
			})
		})
	}
}
