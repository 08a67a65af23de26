package interop_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"golang.org/x/sync/errgroup"

	"github.com/zkrecipes/zkrecipes/host"
	"github.com/zkrecipes/zkrecipes/host/hosttest"
	"github.com/zkrecipes/zkrecipes/internal/testing/ensembletest"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/watchdog"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// way is what a benchmark measures: a lock, or the recipes of a library.
type way struct {
	name  string
	runs  map[string]run         // the workloads that it has, by name
	asked func(testing.TB) int64 // counts the grants that needed a request to the leader; nil for other libraries
}

// run runs a workload once and returns its rate per second. A workload that has no end of its own
// is measured for the window.
type run func(tb testing.TB, window time.Duration) float64

// most is the maximum number of contenders of a lock. All contenders of a Python process
// share its interpreter, and go-zookeeper's lock lists its wait queue at each turn. Beyond
// most.raw, contenders of the plain lock share sessions, because the process may not have
// enough file descriptors for their sessions and ours.
var most = struct{ libraries, plugin, listing, raw int }{100, 1000, 3000, 8000}

// waysOf opens n sessions for each kind of lock. Contender i of each library connects to
// server i modulo the number of servers.
func waysOf(tb testing.TB, addrs []string, n int) []way {
	look := lookAt(tb, addrs)
	var ways []way
	inGo := func(name string, lockOf func(i int, path string) lock) {
		path := "/peers/" + name
		c := contenders{look: look, path: path, most: 1}
		for i := range n {
			c.locks = append(c.locks, lockOf(i, path))
		}
		ways = append(ways, way{name: name, runs: map[string]run{"cycle": c.cycle, "drain": c.drain}})
	}
	own := func(prefix string, addrs []string, open recipes.Opener, strategies ...recipes.Strategy) {
		sessions := ownSessions(tb, addrs, n, open)
		for _, strategy := range strategies {
			if strategy == recipes.Predecessor && n > most.listing {
				continue
			}
			inGo(prefix+string(strategy), func(i int, path string) lock { return newOwnLock(tb, sessions[i], path, strategy) })
			ways[len(ways)-1].asked = func(tb testing.TB) (sum int64) {
				for _, s := range sessions {
					stats := must.Get(s.Stats(tb.Context()))(tb)
					sum += stats.Asked
				}
				return sum
			}
		}
	}
	raw := rawSessions(tb, addrs, min(max(n, 2), most.raw))
	inGo("plain", func(i int, path string) lock { return newPlain(tb, raw[i%len(raw)], path) })
	if n <= most.listing {
		ways = append(ways,
			way{name: "floor", runs: map[string]run{"drain": func(tb testing.TB, _ time.Duration) float64 { return floor(tb, raw, time.Second, deletes) }}},
			way{name: "handover", runs: map[string]run{"drain": func(tb testing.TB, _ time.Duration) float64 { return floor(tb, raw, time.Second, handsOver) }}})
		inGo("go-zookeeper", func(i int, path string) lock { return goZookeeper{zk.NewLock(raw[i], path, zk.WorldACL(zk.PermAll))} })
	}
	if n <= most.libraries {
		for _, name := range []string{"curator", "kazoo"} {
			p := startLibrary(tb, name, "/peers/"+name, addrs, n, peerTimeout)
			p.look = look
			ways = append(ways, way{name: name, runs: map[string]run{"cycle": p.run("cycle")}})
		}
	}
	own("", addrs, zookeeper.Open, recipes.Predecessor, recipes.Handoff)
	if n <= most.plugin {
		own("relay-", throughProcess(tb, addrs), zookeeper.Open, recipes.Handoff)
		own("plugin-", addrs, hosttest.NewProcess(tb, host.Config{StartTimeout: watchdog.Patience}).Plugin.Open, recipes.Predecessor, recipes.Handoff)
	}
	return ways
}

// lookAt returns a session that is not a contender. It creates the parent of all paths.
func lookAt(tb testing.TB, addrs []string) *zk.Conn {
	look := rawSessions(tb, addrs, 1)[0]
	if _, err := look.Create("/peers", nil, 0, zk.WorldACL(zk.PermAll)); err != nil && !errors.Is(err, zk.ErrNodeExists) {
		tb.Fatal(err)
	}
	return look
}

// TestPeersTakeTurns runs the benchmark for a short time with few contenders.
func TestPeersTakeTurns(t *testing.T) {
	cfg := ensembletest.Quick(1)
	cfg.SystemProperties = nil // a deleted path would lose the count of created znodes
	for _, w := range waysOf(t, ensembletest.Start(t, cfg).Addrs(), 3) {
		t.Run(w.name, func(t *testing.T) {
			for range 2 { // repeated, like the rounds of the benchmark
				if cycle := w.runs["cycle"]; cycle != nil {
					cycle(t, 50*time.Millisecond)
				}
			}
			if drain := w.runs["drain"]; drain != nil {
				drain(t, 0)
			}
		})
	}
}

// lock is the lock of one contender.
type lock interface {
	acquire(context.Context) error
	release(context.Context) error
}

// contenders contend for a path, all in this process.
type contenders struct {
	look  *zk.Conn // another session; nil: the locks have paths of their own
	path  string
	locks []lock
	most  int32            // the shares that may be held at once
	share func(lock) int32 // of a hold; nil: 1
	held  atomic.Int32     // shares
}

// firstTurn is how long each first hold lasts, before the measurement. Other holds are released
// at once: of a holder too many, none would overlap for long enough to be counted.
const firstTurn = time.Millisecond

// turn is one cycle.
func (c *contenders) turn(ctx context.Context, l lock, lasts time.Duration) error {
	if err := l.acquire(ctx); err != nil {
		return err
	}
	share := int32(1)
	if c.share != nil {
		share = c.share(l)
	}
	if c.held.Add(share) > c.most {
		return fmt.Errorf("too many hold %s", c.path)
	}
	time.Sleep(lasts)
	c.held.Add(-share)
	return l.release(ctx)
}

func (c *contenders) cycle(tb testing.TB, window time.Duration) float64 {
	var done atomic.Int64
	var stop atomic.Bool
	var first sync.WaitGroup
	first.Add(len(c.locks))
	made := creations(tb, c.look, c.path)
	all, ctx := errgroup.WithContext(tb.Context())
	for _, l := range c.locks {
		all.Go(func() error {
			had := sync.OnceFunc(first.Done)
			defer had()
			for lasts := firstTurn; ; lasts = 0 {
				if err := c.turn(ctx, l, lasts); err != nil {
					stop.Store(true)
					return err
				}
				done.Add(1)
				had()
				if stop.Load() {
					return nil
				}
			}
		})
	}
	first.Wait() // each contender has had one turn
	begun, before := time.Now(), done.Load()
	time.Sleep(window)
	count, took := done.Load()-before, time.Since(begun)
	stop.Store(true)
	must.Do(tb, all.Wait())
	made.atLeast(tb, done.Load())
	return float64(count) / took.Seconds()
}

func (c *contenders) drain(tb testing.TB, _ time.Duration) float64 {
	first := c.locks[0]
	must.Do(tb, first.acquire(tb.Context()))
	others, ctx := errgroup.WithContext(tb.Context())
	for _, l := range c.locks[1:] {
		others.Go(func() error { return c.turn(ctx, l, 0) })
	}
	awaitChildren(ctx, tb, c.look, c.path, len(c.locks))
	begun := time.Now()
	must.Do(tb, errors.Join(first.release(tb.Context()), others.Wait()))
	return float64(len(c.locks)-1) / time.Since(begun).Seconds()
}

// awaitChildren returns when n contenders have joined the wait queue, or ctx ends.
func awaitChildren(ctx context.Context, tb testing.TB, look *zk.Conn, path string, n int) {
	tb.Helper()
	for ctx.Err() == nil {
		exists, stat, err := look.Exists(path)
		if err != nil {
			tb.Fatal(err)
		}
		if exists && int(stat.NumChildren) >= n {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// made counts the znodes that have been created in a path, unless look is nil.
type made struct {
	look   *zk.Conn
	path   string
	czxid  int64
	before int64
}

// creations returns the count of znodes created in the path up to now.
func creations(tb testing.TB, look *zk.Conn, path string) made {
	if look == nil {
		return made{}
	}
	m := made{look: look, path: path}
	m.czxid, m.before = m.count(tb)
	return m
}

// count returns the number of znodes created in the path. Its cversion counts creations and
// deletions.
func (m made) count(tb testing.TB) (czxid, created int64) {
	tb.Helper()
	must.Get(m.look.Sync(m.path))(tb)
	exists, stat, err := m.look.Exists(m.path)
	if err != nil {
		tb.Fatal(err)
	}
	if !exists {
		return 0, 0
	}
	return stat.Czxid, (int64(stat.Cversion) + int64(stat.NumChildren)) / 2
}

// atLeast fails if fewer znodes have been created since.
func (m made) atLeast(tb testing.TB, cycles int64) {
	tb.Helper()
	if m.look == nil {
		return
	}
	czxid, created := m.count(tb)
	if czxid == m.czxid { // the server deletes an empty container
		created -= m.before
	}
	if cycles == 0 || created < cycles {
		tb.Fatalf("%d znodes were created in %s in %d cycles: no contention there", created, m.path, cycles)
	}
}

type goZookeeper struct{ *zk.Lock }

func (l goZookeeper) acquire(context.Context) error { return l.Lock.Lock() }
func (l goZookeeper) release(context.Context) error { return l.Unlock() }

// ownLock is our lock.
type ownLock struct {
	recipes.Lock
	hold recipes.Hold
}

func newOwnLock(tb testing.TB, s recipes.Recipes, path string, strategy recipes.Strategy) *ownLock {
	l := must.Get(s.Lock(path, recipes.LockConfig{Strategy: strategy}))(tb)
	return &ownLock{Lock: l}
}

func (l *ownLock) acquire(ctx context.Context) (err error) {
	l.hold, err = l.Acquire(ctx)
	return err
}

func (l *ownLock) release(ctx context.Context) error { return l.hold.Release(ctx) }

// peerPacket is enough for a listing of the longest wait queue. go-zookeeper's default would
// take 3 MiB for each of thousands of sessions.
const peerPacket = 320 << 10

const peerTimeout = 40 * time.Second

// atOnce opens n sessions, a few at a time.
func atOnce(tb testing.TB, n int, open func(context.Context, int) error) {
	tb.Helper()
	atOnceOf(tb, n, 32, open)
}

// atOnceOf runs do n times, at most limit at once.
func atOnceOf(tb testing.TB, n, limit int, do func(context.Context, int) error) {
	tb.Helper()
	g, ctx := errgroup.WithContext(tb.Context())
	g.SetLimit(limit)
	for i := range n {
		g.Go(func() error { return do(ctx, i) })
	}
	must.Do(tb, g.Wait())
}

func rawSessions(tb testing.TB, addrs []string, n int) []*zk.Conn {
	return rawSessionsFor(tb, addrs, n, peerTimeout)
}

func rawSessionsFor(tb testing.TB, addrs []string, n int, timeout time.Duration) []*zk.Conn {
	conns := make([]*zk.Conn, n)
	atOnce(tb, n, func(_ context.Context, i int) error {
		c, events, err := zk.Connect(addrs[i%len(addrs):][:1], timeout, zk.WithLogInfo(false), zk.WithMaxBufferSize(peerPacket), zk.WithMaxConnBufferSize(peerPacket))
		if err != nil {
			return err
		}
		conns[i] = c
		for e := range events {
			if e.State == zk.StateHasSession {
				return nil
			}
		}
		return errors.New("no session")
	})
	tb.Cleanup(func() {
		var closing sync.WaitGroup
		for _, c := range conns {
			closing.Go(c.Close)
		}
		closing.Wait()
	})
	return conns
}

func ownSessions(tb testing.TB, addrs []string, n int, open recipes.Opener) []recipes.Client {
	return ownSessionsFor(tb, addrs, n, open, recipes.SessionConfig{SessionTimeout: peerTimeout, MaxPacket: peerPacket})
}

func ownSessionsFor(tb testing.TB, addrs []string, n int, open recipes.Opener, cfg recipes.SessionConfig) []recipes.Client {
	sessions := make([]recipes.Client, n)
	atOnce(tb, n, func(ctx context.Context, i int) (err error) {
		cfg := cfg
		cfg.Servers = addrs[i%len(addrs):][:1]
		sessions[i], err = open(ctx, cfg)
		return err
	})
	tb.Cleanup(func() {
		var closing sync.WaitGroup
		for _, s := range sessions {
			closing.Go(func() { s.Close(context.Background()) })
		}
		closing.Wait()
	})
	return sessions
}
