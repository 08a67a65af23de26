package interop_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"golang.org/x/sync/errgroup"

	"github.com/zkrecipes/zkrecipes/host"
	"github.com/zkrecipes/zkrecipes/host/hosttest"
	"github.com/zkrecipes/zkrecipes/internal/relay"
	"github.com/zkrecipes/zkrecipes/internal/testing/ensembletest"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/watchdog"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

const (
	permits   = 3    // of the semaphore
	writeEach = 10   // one in this many turns is a write
	elements  = 1000 // the most that are put into the queue: one for each millisecond of the window
	many      = 64   // locks of one session
	distance  = time.Millisecond
)

// setting is a set of workloads that share their sessions.
type setting struct {
	name       string // in front of the number of contenders
	contenders int
	sessions   int
	distant    bool // distance is the round-trip time to the servers
	workloads  []workload
}

var settings = []setting{
	{"", 1, 1, false, []workload{{"put", "elements/s"}, {"take", "elements/s"}}},
	{"rtt=1ms/", 1, 1, true, []workload{{"acquire", "acquires/s"}}},
	{"", 20, 20, false, []workload{{"semaphore", "cycles/s"}, {"shared", "cycles/s"}, {"barrier", "cycles/s"}, {"failover", "failovers/s"}}},
	{"", many, 1, false, []workload{{"many", "cycles/s"}}},
}

// recipeWays opens the sessions of each library. Each has the workloads that it has a recipe for.
func recipeWays(tb testing.TB, addrs []string, s setting) []way {
	if s.distant {
		delay := relay.NewDelay(distance)
		far := must.Get(relay.Listen(addrs[:1], delay))(tb)
		tb.Cleanup(func() { far.Cut(); delay.Close() })
		addrs = []string{far.Addr()}
	}
	look := lookAt(tb, addrs)
	raw := rawSessions(tb, addrs, 1)
	theirs := lockRuns("/peers/go-zookeeper", func(path string) lock { return goZookeeper{zk.NewLock(raw[0], path, zk.WorldACL(zk.PermAll))} })
	if _, err := raw[0].Create("/peers/handover", nil, 0, zk.WorldACL(zk.PermAll)); err != nil && !errors.Is(err, zk.ErrNodeExists) {
		tb.Fatal(err)
	}
	least := lockRuns("/peers/handover", func(path string) lock { return handingOver{newPlain(tb, raw[0], path)} })
	ways := []way{{name: "go-zookeeper", runs: theirs}, {name: "handover", runs: least}}
	for _, name := range []string{"curator", "kazoo"} {
		p := startLibrary(tb, name, "/peers/"+name, addrs, s.sessions, peerTimeout)
		runs := map[string]run{}
		for _, l := range s.workloads {
			runs[l.name] = p.run(l.name)
		}
		for _, l := range []string{"put", "take"} {
			runs[l] = func(tb testing.TB, window time.Duration) float64 { return p.do(tb, l, int64(elementsOf(window))) }
		}
		if name == "kazoo" {
			delete(runs, "shared") // kazoo's readers and writers can wait for each other (kazoo#649)
		}
		// Both double barriers hung in a third round (Curator 5.4.0, kazoo 2.8.0): 19 members
		// were leaving, and the last one still waited to enter. It misses the others if one of
		// them leaves between its enrolment and its count.
		delete(runs, "barrier")
		ways = append(ways, way{name: name, runs: runs})
	}
	plugin := hosttest.NewProcess(tb, host.Config{StartTimeout: watchdog.Patience}).Plugin.Open
	return append(ways,
		way{name: "handoff", runs: ownRuns(tb, look, addrs, s.sessions, "/peers/ours", zookeeper.Open)},
		way{name: "relay-handoff", runs: ownRuns(tb, look, throughProcess(tb, addrs), s.sessions, "/peers/relay", zookeeper.Open)},
		way{name: "plugin-handoff", runs: ownRuns(tb, look, addrs, s.sessions, "/peers/plugin", plugin)})
}

// TestRecipesRun runs all workloads of the benchmark once, in one set of sessions: the processes of
// the libraries and of the plugin take most of its time.
func TestRecipesRun(t *testing.T) {
	cfg := ensembletest.Quick(1)
	cfg.SystemProperties = nil // as in TestPeersTakeTurns
	all := setting{sessions: permits + 1}
	for _, s := range settings {
		all.workloads = append(all.workloads, s.workloads...)
	}
	for _, w := range recipeWays(t, ensembletest.Start(t, cfg).Addrs(), all) {
		for _, l := range all.workloads {
			if run := w.runs[l.name]; run != nil {
				for range 2 { // repeated, like the rounds of the benchmark
					t.Logf("%s by %s: %.0f %s", l.name, w.name, run(t, 50*time.Millisecond), l.unit)
				}
			}
		}
	}
}

// lockRuns are the workloads that need a lock only, in one session.
func lockRuns(path string, lockOf func(path string) lock) map[string]run {
	c := contenders{most: many}
	for i := range many {
		c.locks = append(c.locks, lockOf(path+"/many-"+strconv.Itoa(i)))
	}
	return map[string]run{
		"many": c.cycle,
		"acquire": func(tb testing.TB, window time.Duration) float64 {
			return acquires(tb, lockOf(path+"/acquire"), window)
		},
	}
}

// acquires measures uncontended acquisitions. Their releases do not count.
func acquires(tb testing.TB, l lock, window time.Duration) float64 {
	var took time.Duration
	count := 0
	for begun := time.Now(); count == 0 || time.Since(begun) < window; count++ {
		asked := time.Now()
		must.Do(tb, l.acquire(tb.Context()))
		took += time.Since(asked)
		must.Do(tb, l.release(tb.Context()))
	}
	return float64(count) / took.Seconds()
}

// ownRuns are the workloads of our recipes, with n sessions.
func ownRuns(tb testing.TB, look *zk.Conn, addrs []string, n int, path string, open recipes.Opener) map[string]run {
	sessions := ownSessions(tb, addrs, n, open)
	runs := lockRuns(path, func(path string) lock { return newOwnLock(tb, sessions[0], path, recipes.Handoff) })
	semaphore := contenders{look: look, path: path + "/semaphore", most: permits}
	shared := contenders{look: look, path: path + "/shared", most: int32(n), share: func(l lock) int32 {
		if l.(*ownShared).writes() {
			return int32(n)
		}
		return 1
	}}
	var barriers []recipes.DoubleBarrier
	for i, s := range sessions {
		semaphore.locks = append(semaphore.locks, &ownSemaphore{Semaphore: must.Get(s.Semaphore(semaphore.path, recipes.SemaphoreConfig{Permits: permits}))(tb)})
		shared.locks = append(shared.locks, &ownShared{SharedLock: must.Get(s.SharedLock(shared.path, recipes.SharedLockConfig{}))(tb), turn: i})
		barriers = append(barriers, must.Get(s.DoubleBarrier(path+"/barrier", recipes.DoubleBarrierConfig{Size: n}))(tb))
	}
	q := must.Get(sessions[0].Queue(path+"/queue", recipes.QueueConfig{}))(tb)
	runs["semaphore"], runs["shared"] = semaphore.cycle, shared.cycle
	runs["barrier"] = func(tb testing.TB, window time.Duration) float64 { return enterAndLeave(tb, barriers, window) }
	runs["put"] = func(tb testing.TB, window time.Duration) float64 {
		put, _ := putAndTake(tb, q, elementsOf(window))
		return put
	}
	runs["take"] = func(tb testing.TB, window time.Duration) float64 {
		_, take := putAndTake(tb, q, elementsOf(window))
		return take
	}
	runs["failover"] = func(tb testing.TB, _ time.Duration) float64 {
		return failovers(tb, look, path+"/election", ownSessions(tb, addrs, n, open))
	}
	return runs
}

// tooMany is a semaphore with permits+1 permits.
type tooMany chan struct{}

func (m tooMany) acquire(ctx context.Context) error {
	time.Sleep(time.Microsecond) // as a request does: without it, virtual time would stand still
	select {
	case m <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (m tooMany) release(context.Context) error { <-m; return nil }

// failing is a test that is expected to fail.
type failing struct {
	testing.TB
	why atomic.Value
}

func (f *failing) Fatal(args ...any) {
	f.why.Store(fmt.Sprint(args...))
	runtime.Goexit()
}

func TestABenchmarkNoticesAHolderTooMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := contenders{path: "/semaphore", most: permits}
		m := make(tooMany, permits+1)
		for range 20 {
			c.locks = append(c.locks, m)
		}
		f := failing{TB: t}
		over := make(chan struct{})
		go func() { defer close(over); c.cycle(&f, time.Millisecond) }()
		<-over
		if why, _ := f.why.Load().(string); !strings.Contains(why, "too many hold /semaphore") {
			t.Errorf("failed for %q", why)
		}
	})
}

type ownSemaphore struct {
	recipes.Semaphore
	hold recipes.Hold
}

func (s *ownSemaphore) acquire(ctx context.Context) (err error) {
	s.hold, err = s.Acquire(ctx)
	return err
}

func (s *ownSemaphore) release(ctx context.Context) error { return s.hold.Release(ctx) }

type ownShared struct {
	recipes.SharedLock
	turn int
	hold recipes.SharedHold
}

func (l *ownShared) writes() bool { return l.turn%writeEach == 0 }

func (l *ownShared) acquire(ctx context.Context) (err error) {
	l.turn++
	if l.writes() {
		l.hold, err = l.AcquireWrite(ctx)
	} else {
		l.hold, err = l.AcquireRead(ctx)
	}
	return err
}

func (l *ownShared) release(ctx context.Context) error { return l.hold.Release(ctx) }

// enterAndLeave lets all members enter and leave together, again and again. A cycle is one
// member's entering and leaving. No member enters again before all have left.
func enterAndLeave(tb testing.TB, barriers []recipes.DoubleBarrier, window time.Duration) float64 {
	n, rounds := len(barriers), 0
	begun := time.Now()
	for rounds == 0 || time.Since(begun) < window {
		rounds++
		var came atomic.Int32
		members, ctx := errgroup.WithContext(tb.Context())
		for _, b := range barriers {
			members.Go(func() error {
				came.Add(1)
				p, err := b.Enter(ctx, nil)
				if err != nil {
					return err
				}
				if came := int(came.Load()); came < n {
					return fmt.Errorf("a member has passed %s with %d of %d", b.Path(), came, n)
				}
				return p.Leave(ctx)
			})
		}
		must.Do(tb, members.Wait())
	}
	return float64(rounds*n) / time.Since(begun).Seconds()
}

func elementsOf(window time.Duration) int { return min(elements, int(window.Milliseconds())) }

// putAndTake puts n elements, one after the other, and takes them the same way.
func putAndTake(tb testing.TB, q recipes.Queue, n int) (put, take float64) {
	begun := time.Now()
	for i := range n {
		must.Get(q.Put(tb.Context(), element(i)))(tb)
	}
	put = float64(n) / time.Since(begun).Seconds()
	begun = time.Now()
	for i := range n {
		if got := must.Get(q.Take(tb.Context()))(tb); string(got.Data) != string(element(i)) {
			tb.Fatalf("took %q; want %q", got.Data, element(i))
		}
	}
	return put, float64(n) / time.Since(begun).Seconds()
}

// failovers lets each leader close its session as soon as it is elected, until the last candidate
// leads. So no session timeout is part of a failover. It closes all sessions.
func failovers(tb testing.TB, look *zk.Conn, path string, sessions []recipes.Client) float64 {
	var leaders atomic.Int32
	first := make(chan struct{})
	last := make(chan time.Time, len(sessions))
	candidates, ctx := errgroup.WithContext(tb.Context())
	for _, s := range sessions {
		e := must.Get(s.Election(path, recipes.ElectionConfig{}))(tb)
		candidates.Go(func() error {
			if _, err := e.Campaign(ctx, nil); err != nil {
				return err
			}
			if leaders.Add(1) != 1 {
				return fmt.Errorf("two lead %s", path)
			}
			last <- time.Now()
			select {
			case <-first:
			case <-ctx.Done():
			}
			leaders.Add(-1)
			return s.Close(ctx)
		})
	}
	awaitChildren(ctx, tb, look, path, len(sessions))
	begun := time.Now()
	close(first)
	must.Do(tb, candidates.Wait())
	close(last)
	var end time.Time
	for at := range last {
		end = at
	}
	return float64(len(sessions)-1) / end.Sub(begun).Seconds()
}
