package interop_test

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/google/uuid"

	"github.com/zkrecipes/zkrecipes/host"
	"github.com/zkrecipes/zkrecipes/host/hosttest"
	"github.com/zkrecipes/zkrecipes/internal/ensemble"
	"github.com/zkrecipes/zkrecipes/internal/probe"
	"github.com/zkrecipes/zkrecipes/internal/testing/ensembletest"
	"github.com/zkrecipes/zkrecipes/internal/testing/watchdog"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// BenchmarkHolds measures the cost of locks that are held without contention, the most common
// state of a lock: the processor time of all servers and of the client in a second. Rounds
// alternate between the libraries. In workload idle each session holds one lock. In workload hold
// one session holds all of them, and the time until it does is measured too. Client is the
// process of the library; through the plugin it is both processes.
//
// Locks are held for a session timeout before they are measured, and then for another.
func BenchmarkHolds(b *testing.B) {
	idle := time.Duration(numbers(b, "ZKRECIPES_IDLE_TIMEOUT_MS", "30000")[0]) * time.Millisecond
	measured := samples{}
	for _, servers := range numbers(b, "ZKRECIPES_PEERS_SERVERS", "1,3") {
		e := startForHolds(b, ensemble.Config{Servers: servers, HeapMiB: 1024})
		for _, w := range []struct {
			name    string
			locks   []int
			one     bool
			timeout time.Duration
		}{
			{"idle", numbers(b, "ZKRECIPES_IDLE", "300,3000"), false, idle},
			{"hold", numbers(b, "ZKRECIPES_HOLD", "1000,20000"), true, min(idle, 10*time.Second)},
		} {
			for _, n := range w.locks {
				for round := range numbers(b, "ZKRECIPES_PEERS_ROUNDS", "6")[0] {
					for i := range holders {
						library := holders[(i+round)%len(holders)]
						if library.threads && !w.one && n > mostThreaded {
							continue
						}
						sessions := n
						if w.one {
							sessions = 1
						}
						b.Run(fmt.Sprintf("servers=%d/contenders=%d/workload=%s/round=%d/lock=%s", servers, n, w.name, round, library.name), func(b *testing.B) {
							c := costOf(b, library.hold, e, holding{e.Addrs(), sessions, n, w.timeout}, w.timeout)
							b.ReportMetric(c.server, "server-ms/s")
							b.ReportMetric(c.client, "client-ms/s")
							b.ReportMetric(0, "ns/op")
							measured.add(sample{servers, w.name + ", server", n, library.name}, c.server)
							measured.add(sample{servers, w.name + ", client", n, library.name}, c.client)
							if w.one {
								b.ReportMetric(c.after.Seconds(), "held-after-s")
								measured.add(sample{servers, "held after", n, library.name}, c.after.Seconds())
							}
						})
					}
				}
			}
		}
	}
	fmt.Print(measured.ratios())
}

// mostThreaded is how many sessions a library with several threads per session opens.
const mostThreaded = 300

// startForHolds starts servers that can read the end of a session with 50,000 locks. They do not
// delete the containers that one library left while another is measured.
func startForHolds(tb testing.TB, cfg ensemble.Config) *ensemble.Ensemble {
	cfg.Properties = map[string]string{"maxClientCnxns": "0"}
	cfg.SystemProperties = map[string]string{"jute.maxbuffer": strconv.Itoa(holdPacket), "znode.container.checkIntervalMs": strconv.Itoa(1 << 30)}
	return ensembletest.Start(tb, cfg)
}

const holdPacket = 16 << 20

// TestHoldsAreMeasured runs the benchmark with few locks, for no time.
func TestHoldsAreMeasured(t *testing.T) {
	e := startForHolds(t, ensembletest.Quick(1))
	for _, library := range holders {
		for _, sessions := range []int{1, 3} {
			t.Run(fmt.Sprint(library.name, sessions), func(t *testing.T) {
				if c := costOf(t, library.hold, e, holding{e.Addrs(), sessions, 3, peerTimeout}, 0); c.after <= 0 {
					t.Error("3 locks were held at once")
				}
			})
		}
	}
}

// holding is what a library is to hold.
type holding struct {
	addrs           []string
	sessions, locks int
	timeout         time.Duration
}

// holders has a function for each library. It acquires all locks, 64 at once, and returns how long
// that took, and the client's processes. The locks are held until the test ends.
var holders = []struct {
	name    string
	threads bool // for each session
	hold    func(testing.TB, holding) (time.Duration, []int)
}{
	{"go-zookeeper", false, func(tb testing.TB, h holding) (time.Duration, []int) {
		sessions := rawSessionsFor(tb, h.addrs, h.sessions, h.timeout)
		return h.acquire(tb, func(i int, path string) lock {
			return goZookeeper{zk.NewLock(sessions[i%h.sessions], path, zk.WorldACL(zk.PermAll))}
		}), []int{os.Getpid()}
	}},
	{"curator", true, holdIn("curator")},
	{"kazoo", true, holdIn("kazoo")},
	{"handoff", false, func(tb testing.TB, h holding) (time.Duration, []int) {
		return h.acquireOwn(tb, zookeeper.Open), []int{os.Getpid()}
	}},
	{"plugin-handoff", false, func(tb testing.TB, h holding) (time.Duration, []int) {
		plugin := hosttest.NewProcess(tb, host.Config{StartTimeout: watchdog.Patience}).Plugin
		return h.acquireOwn(tb, plugin.Open), []int{os.Getpid(), plugin.PID()}
	}},
}

func holdIn(library string) func(testing.TB, holding) (time.Duration, []int) {
	return func(tb testing.TB, h holding) (time.Duration, []int) {
		p := startLibrary(tb, library, rootOfHolds(), h.addrs, h.sessions, h.timeout)
		rate := p.do(tb, "hold", int64(h.locks))
		return time.Duration(float64(h.locks) / rate * float64(time.Second)), []int{p.pid}
	}
}

func (h holding) acquireOwn(tb testing.TB, open recipes.Opener) time.Duration {
	sessions := ownSessionsFor(tb, h.addrs, h.sessions, open, recipes.SessionConfig{SessionTimeout: h.timeout, MaxPacket: holdPacket})
	return h.acquire(tb, func(i int, path string) lock {
		return newOwnLock(tb, sessions[i%h.sessions], path, recipes.Handoff)
	})
}

// acquire acquires all locks of this process.
func (h holding) acquire(tb testing.TB, lockOf func(i int, path string) lock) time.Duration {
	root, begun := rootOfHolds(), time.Now()
	locks := make(chan lock)
	go func() {
		defer close(locks)
		for i := range h.locks {
			locks <- lockOf(i, root+"/hold-"+strconv.Itoa(i))
		}
	}()
	atOnceOf(tb, many, many, func(ctx context.Context, _ int) error {
		for l := range locks {
			if err := l.acquire(ctx); err != nil {
				return err
			}
		}
		return nil
	})
	return time.Since(begun)
}

func rootOfHolds() string { return "/m-" + uuid.NewString()[:8] }

// cost is what holds cost: milliseconds of processor time a second, and the time until all were held.
type cost struct {
	after          time.Duration
	server, client float64
}

func costOf(tb testing.TB, hold func(testing.TB, holding) (time.Duration, []int), e *ensemble.Ensemble, h holding, window time.Duration) cost {
	tb.Helper()
	after, clients := hold(tb, h)
	var servers []int
	for i := range h.addrs {
		servers = append(servers, e.Server(i).Pid())
	}
	time.Sleep(window) // what a young hold costs is not the subject
	begun, server, client := time.Now(), processTime(tb, servers), processTime(tb, clients)
	time.Sleep(window)
	server, client = processTime(tb, servers)-server, processTime(tb, clients)-client
	seconds := time.Since(begun).Seconds()
	return cost{after, server.Seconds() * 1000 / seconds, client.Seconds() * 1000 / seconds}
}

func processTime(tb testing.TB, pids []int) (sum time.Duration) {
	tb.Helper()
	for _, pid := range pids {
		used, ok := probe.ProcessTime(pid)
		if !ok {
			tb.Fatalf("process %d has ended", pid)
		}
		sum += used
	}
	return sum
}
