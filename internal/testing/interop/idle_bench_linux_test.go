package interop_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/google/uuid"

	"github.com/zkrecipes/zkrecipes/internal/ensemble"
	"github.com/zkrecipes/zkrecipes/internal/probe"
	"github.com/zkrecipes/zkrecipes/internal/testing/ensembletest"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// BenchmarkIdleHolds measures what a lock costs that is held and not contended, which is the
// commonest state of a lock: the processor time of the server and of the client in a second.
// Each session holds one lock. Rounds alternate between the libraries, on one server.
//
//	ZKRECIPES_IDLE=3000 go test ./internal/testing/interop -run '^$' -bench IdleHolds -benchtime 1x -timeout 1h
func BenchmarkIdleHolds(b *testing.B) {
	n := numbers(b, "ZKRECIPES_IDLE", "300")[0]
	timeout := time.Duration(numbers(b, "ZKRECIPES_IDLE_TIMEOUT_MS", "30000")[0]) * time.Millisecond
	window := time.Duration(numbers(b, "ZKRECIPES_IDLE_WINDOW_MS", "30000")[0]) * time.Millisecond
	e := ensembletest.Start(b, ensemble.Config{Servers: 1, HeapMiB: 1024, Properties: map[string]string{"maxClientCnxns": "0", "maxSessionTimeout": "60000"}})
	server := e.Server(0).Pid()
	for round := range numbers(b, "ZKRECIPES_IDLE_ROUNDS", "3")[0] {
		for _, library := range []string{"go-zookeeper", "ours"} {
			b.Run(fmt.Sprintf("sessions=%d/round=%d/lock=%s", n, round, library), func(b *testing.B) {
				locks := idleLocks(b, library, e.Addrs(), n, timeout)
				atOnce(b, n, func(ctx context.Context, i int) error { return locks[i].acquire(ctx) })
				time.Sleep(timeout) // what a young hold costs is not the subject
				servers, clients := processTime(b, server), processTime(b, os.Getpid())
				time.Sleep(window)
				servers, clients = processTime(b, server)-servers, processTime(b, os.Getpid())-clients
				b.ReportMetric(float64(servers.Milliseconds())/window.Seconds(), "server-ms/s")
				b.ReportMetric(float64(clients.Milliseconds())/window.Seconds(), "client-ms/s")
				b.ReportMetric(0, "ns/op")
				atOnce(b, n, func(ctx context.Context, i int) error { return locks[i].release(ctx) })
			})
		}
	}
}

func idleLocks(tb testing.TB, library string, addrs []string, n int, timeout time.Duration) []lock {
	locks := make([]lock, n)
	root := "/idle-" + uuid.NewString()
	atOnce(tb, n, func(ctx context.Context, i int) error {
		path := root + "/" + strconv.Itoa(i)
		if library == "ours" {
			s, err := zookeeper.Open(ctx, recipes.SessionConfig{Servers: addrs, SessionTimeout: timeout})
			if err != nil {
				return err
			}
			tb.Cleanup(func() { _ = s.Close(context.Background()) })
			locks[i] = newOwnLock(tb, s, path, recipes.Handoff)
			return nil
		}
		c, events, err := zk.Connect(addrs, timeout, zk.WithLogInfo(false), zk.WithMaxBufferSize(peerPacket), zk.WithMaxConnBufferSize(peerPacket))
		if err != nil {
			return err
		}
		tb.Cleanup(c.Close)
		for e := range events {
			if e.State == zk.StateHasSession {
				locks[i] = goZookeeper{zk.NewLock(c, path, zk.WorldACL(zk.PermAll))}
				return nil
			}
		}
		return errors.New("no session")
	})
	return locks
}

func processTime(tb testing.TB, pid int) time.Duration {
	tb.Helper()
	used, ok := probe.ProcessTime(pid)
	if !ok {
		tb.Fatalf("process %d has ended", pid)
	}
	return used
}

// BenchmarkManyHolds measures one session that holds many locks of different paths: how long it
// takes to acquire them, 64 at once, and what they cost while they are held.
//
//	ZKRECIPES_MANY=20000 go test ./internal/testing/interop -run '^$' -bench ManyHolds -benchtime 1x -timeout 1h
func BenchmarkManyHolds(b *testing.B) {
	n := numbers(b, "ZKRECIPES_MANY", "1000")[0]
	const workers, timeout, window = 64, 10 * time.Second, 10 * time.Second
	e := ensembletest.Start(b, ensemble.Config{Servers: 1, HeapMiB: 1024})
	server := e.Server(0).Pid()
	for round := range numbers(b, "ZKRECIPES_MANY_ROUNDS", "2")[0] {
		for _, library := range []string{"go-zookeeper", "ours"} {
			b.Run(fmt.Sprintf("locks=%d/round=%d/lock=%s", n, round, library), func(b *testing.B) {
				began := time.Now()
				locks := manyLocks(b, library, e.Addrs(), n, timeout)
				next := make(chan lock)
				go func() {
					defer close(next)
					for _, l := range locks {
						next <- l
					}
				}()
				failed := make(chan error, workers)
				for range workers {
					go func() {
						for l := range next {
							if err := l.acquire(b.Context()); err != nil {
								failed <- err
								return
							}
						}
						failed <- nil
					}()
				}
				for range workers {
					must.Do(b, <-failed)
				}
				b.ReportMetric(time.Since(began).Seconds(), "held-after-s")
				time.Sleep(timeout)
				servers, clients := processTime(b, server), processTime(b, os.Getpid())
				time.Sleep(window)
				servers, clients = processTime(b, server)-servers, processTime(b, os.Getpid())-clients
				b.ReportMetric(float64(servers.Milliseconds())/window.Seconds(), "server-ms/s")
				b.ReportMetric(float64(clients.Milliseconds())/window.Seconds(), "client-ms/s")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

func manyLocks(tb testing.TB, library string, addrs []string, n int, timeout time.Duration) []lock {
	locks := make([]lock, n)
	root := "/m-" + uuid.NewString()[:8]
	if library == "ours" {
		s := must.Get(zookeeper.Open(tb.Context(), recipes.SessionConfig{Servers: addrs, SessionTimeout: timeout}))(tb)
		tb.Cleanup(func() { _ = s.Close(context.Background()) })
		for i := range locks {
			locks[i] = newOwnLock(tb, s, root+"/"+strconv.Itoa(i), recipes.Handoff)
		}
		return locks
	}
	c, events, err := zk.Connect(addrs, timeout, zk.WithLogInfo(false), zk.WithMaxBufferSize(peerPacket), zk.WithMaxConnBufferSize(peerPacket))
	must.Do(tb, err)
	tb.Cleanup(c.Close)
	for e := range events {
		if e.State == zk.StateHasSession {
			break
		}
	}
	for i := range locks {
		locks[i] = goZookeeper{zk.NewLock(c, root+"/"+strconv.Itoa(i), zk.WorldACL(zk.PermAll))}
	}
	return locks
}
