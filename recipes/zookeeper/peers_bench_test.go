package zookeeper_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/zkrecipes/zkrecipes/internal/ensemble"
	"github.com/zkrecipes/zkrecipes/internal/ensemble/ensembletest"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
	"golang.org/x/sync/errgroup"
)

// window is how long the cycles of one measurement are counted, after all
// contenders have joined the line.
const window = 3 * time.Second

// BenchmarkPeers compares ways to pass a lock on one real server: a session for
// each contender, who acquires and releases in a loop. Rounds are interleaved, so
// that what else the machine does hits all alike; benchstat takes them for
// samples:
//
//	make bench-peers
//
// No lock can be faster than floor: one committed delete and one watch event, after which
// the next contender deletes. No uncontended cycle can be faster than bare: a create and
// a delete.
func BenchmarkPeers(b *testing.B) {
	addrs := ensembletest.Start(b, ensemble.Config{HeapMiB: 1024}).Addrs()
	for _, n := range []int{1, 10, 100, 1000, 3000} {
		b.Run(fmt.Sprintf("contenders=%d", n), func(b *testing.B) {
			raw, sessions := rawSessions(b, addrs, max(n, 2)), ownSessions(b, addrs, n)
			rounds := 10
			if n > 100 {
				rounds = 5 // each has to let the whole line drain
			}
			for round := range rounds {
				ways := []way{
					{"go-zookeeper", func(i int) cycle { return goZookeeper(raw[i]) }},
					{"predecessor", func(i int) cycle {
						return ownLock(b, sessions[i], recipes.LockConfig{Strategy: recipes.Predecessor})
					}},
					{"handoff", func(i int) cycle {
						return ownLock(b, sessions[i], recipes.LockConfig{Strategy: recipes.Handoff})
					}},
				}
				if n == 1 {
					ways = append(ways, way{"bare", func(i int) cycle { return bare(b, raw[i]) }})
				}
				b.Run("round="+strconv.Itoa(round), func(b *testing.B) {
					b.Run("lock=floor", func(b *testing.B) { floor(b, raw[0], raw[1]) })
					for _, w := range ways {
						b.Run("lock="+w.name, func(b *testing.B) { cycles(b, n, w) })
					}
				})
			}
		})
	}
}

type way struct {
	name string
	make func(contender int) cycle
}

// cycle acquires and releases once.
type cycle func(ctx context.Context) error

// cycles counts the cycles of n contenders in the window.
func cycles(b *testing.B, n int, w way) {
	for range b.N {
		var done atomic.Int64
		var stop atomic.Bool
		var first, all sync.WaitGroup
		first.Add(n)
		for i := range n {
			once := w.make(i)
			all.Go(func() {
				for round := 0; round == 0 || !stop.Load(); round++ {
					if err := once(b.Context()); err != nil {
						b.Error(err)
						stop.Store(true)
					}
					if round == 0 {
						first.Done()
					}
					done.Add(1)
				}
			})
		}
		first.Wait() // each has had one turn
		begun, before := time.Now(), done.Load()
		b.ResetTimer()
		time.Sleep(window)
		count, took := done.Load()-before, time.Since(begun)
		b.StopTimer()
		stop.Store(true)
		all.Wait()
		b.ReportMetric(float64(count)/took.Seconds(), "cycles/s")
		b.ReportMetric(0, "ns/op")
	}
}

func goZookeeper(c *zk.Conn) cycle {
	return func(context.Context) error {
		l := zk.NewLock(c, "/peers", zk.WorldACL(zk.PermAll))
		if err := l.Lock(); err != nil {
			return err
		}
		return l.Unlock()
	}
}

func ownLock(b *testing.B, s recipes.Session, cfg recipes.LockConfig) cycle {
	l, err := s.Lock("/own", cfg)
	if err != nil {
		b.Fatal(err)
	}
	return func(ctx context.Context) error {
		hold, err := l.Acquire(ctx)
		if err != nil {
			return err
		}
		return hold.Release(ctx)
	}
}

func bare(b *testing.B, c *zk.Conn) cycle {
	if _, err := c.Create("/bare", nil, 0, zk.WorldACL(zk.PermAll)); err != nil && !errors.Is(err, zk.ErrNodeExists) {
		b.Fatal(err)
	}
	return func(context.Context) error {
		path, err := c.Create("/bare/lock-", nil, zk.FlagEphemeral|zk.FlagSequence, zk.WorldACL(zk.PermAll))
		if err != nil {
			return err
		}
		return c.Delete(path, -1)
	}
}

// floor has two sessions delete nodes in turn, each when it sees that the other
// has. The nodes and the watches are made before.
func floor(b *testing.B, one, other *zk.Conn) {
	const length = 4000
	for range b.N {
		conns := [2]*zk.Conn{one, other}
		if _, err := one.Create("/floor", nil, 0, zk.WorldACL(zk.PermAll)); err != nil && !errors.Is(err, zk.ErrNodeExists) {
			b.Fatal(err)
		}
		nodes, events := make([]string, length), make([]<-chan zk.Event, length)
		var g errgroup.Group
		g.SetLimit(64)
		for i := range length {
			g.Go(func() (err error) {
				if nodes[i], err = conns[i%2].Create("/floor/n-", nil, zk.FlagEphemeral|zk.FlagSequence, zk.WorldACL(zk.PermAll)); err != nil {
					return err
				}
				_, _, events[i], err = conns[(i+1)%2].GetW(nodes[i]) // who deletes the next
				return err
			})
		}
		if err := g.Wait(); err != nil {
			b.Fatal(err)
		}
		begun := time.Now()
		b.ResetTimer()
		var chain errgroup.Group
		for c := range conns {
			chain.Go(func() error {
				for i := c; i < length; i += 2 {
					if i > 0 {
						<-events[i-1]
					}
					if err := conns[c].Delete(nodes[i], -1); err != nil {
						return err
					}
				}
				return nil
			})
		}
		if err := chain.Wait(); err != nil {
			b.Fatal(err)
		}
		took := time.Since(begun)
		b.StopTimer()
		b.ReportMetric(length/took.Seconds(), "cycles/s")
		b.ReportMetric(0, "ns/op")
	}
}

// The buffers hold a listing of the longest line; go-zookeeper's default would
// take 3 MiB for each of thousands of sessions.
const peerPacket = 320 << 10

func rawSessions(b *testing.B, addrs []string, n int) []*zk.Conn {
	conns := make([]*zk.Conn, n)
	var g errgroup.Group
	g.SetLimit(32)
	for i := range n {
		g.Go(func() error {
			c, events, err := zk.Connect(addrs, 40*time.Second, zk.WithLogInfo(false), zk.WithMaxBufferSize(peerPacket), zk.WithMaxConnBufferSize(peerPacket))
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
	}
	if err := g.Wait(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		var closing sync.WaitGroup
		for _, c := range conns {
			closing.Go(c.Close)
		}
		closing.Wait()
	})
	return conns
}

func ownSessions(b *testing.B, addrs []string, n int) []recipes.Session {
	sessions := make([]recipes.Session, n)
	g, ctx := errgroup.WithContext(b.Context())
	g.SetLimit(32)
	for i := range n {
		g.Go(func() (err error) {
			sessions[i], err = zookeeper.Open(ctx, recipes.SessionConfig{Servers: addrs, SessionTimeout: 40 * time.Second, MaxPacket: peerPacket})
			return err
		})
	}
	if err := g.Wait(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		var closing sync.WaitGroup
		for _, s := range sessions {
			closing.Go(func() { s.Close(context.Background()) })
		}
		closing.Wait()
	})
	return sessions
}

// BenchmarkWaitingSessions measures what a session takes of this process's
// resident memory, idle and while its contender waits.
func BenchmarkWaitingSessions(b *testing.B) {
	const n = 5000
	addrs := ensembletest.Start(b, ensemble.Config{HeapMiB: 1024, NoSync: true}).Addrs()
	for range b.N {
		ctx, giveUp := context.WithCancel(b.Context())
		before := resident(b)
		sessions := make([]recipes.Session, n)
		var opening errgroup.Group
		opening.SetLimit(32)
		for i := range n {
			opening.Go(func() (err error) {
				sessions[i], err = zookeeper.Open(ctx, recipes.SessionConfig{Servers: addrs, SessionTimeout: 40 * time.Second})
				return err
			})
		}
		if err := opening.Wait(); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(resident(b)-before)/n/1024, "KiB/idle-session")
		var waiting, all sync.WaitGroup
		waiting.Add(n)
		for _, s := range sessions {
			l, err := s.Lock("/memory", recipes.LockConfig{Joined: func(recipes.Place) { waiting.Done() }})
			if err != nil {
				b.Fatal(err)
			}
			all.Go(func() {
				if hold, err := l.Acquire(ctx); err == nil {
					<-hold.Done()
				}
			})
		}
		waiting.Wait()
		b.ReportMetric(float64(resident(b)-before)/n/1024, "KiB/waiting-session")
		b.ReportMetric(0, "ns/op")
		giveUp()
		var closing sync.WaitGroup
		for _, s := range sessions {
			closing.Go(func() { s.Close(context.Background()) })
		}
		closing.Wait()
		all.Wait()
	}
}

// resident is this process's resident memory, in bytes, without garbage.
func resident(b *testing.B) int64 {
	debug.FreeOSMemory()
	statm, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		b.Skip("no /proc")
	}
	var size, pages int64
	if _, err := fmt.Sscan(string(statm), &size, &pages); err != nil {
		b.Fatal(err)
	}
	return pages * int64(os.Getpagesize())
}
