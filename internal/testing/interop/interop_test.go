package interop_test

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/zkrecipes/zkrecipes/internal/grants"
	"github.com/zkrecipes/zkrecipes/internal/testing/ensembletest"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/testall"
	"github.com/zkrecipes/zkrecipes/recipes"
)

const (
	// secondsEnv is how long each pair contends, in seconds.
	secondsEnv = "ZKRECIPES_INTEROP_SECONDS"

	sessionTimeout = 3 * time.Second
	killEvery      = 5 * time.Second
)

// pair is two recipes that share a path: theirs, and ours with its dialect.
type pair struct {
	library, theirs, ours string

	named string // in docs/interop.md
	free  bool   // turns do not exclude each other
	rw    bool   // the recipe has readers
	lists bool   // their library lists the wait queue, and must see our contender
	stops bool   // all contenders can wait for each other until one of them gives up (kazoo#649)
	meet  bool   // all four processes take part in each turn, so a turn waits for one that was killed
}

var pairs = []pair{
	{library: "curator", theirs: "lock", ours: "zookeeper/lock", named: "Curator InterProcessMutex, Lock"},
	{library: "curator", theirs: "lock", ours: "curator/lock", named: "Curator InterProcessMutex, Lock `curator`"},
	{library: "curator", theirs: "selector", ours: "curator/selector", named: "Curator LeaderSelector, Lock `curator`", lists: true},
	{library: "curator", theirs: "rw", ours: "curator/rw", named: "Curator InterProcessReadWriteLock, SharedLock `curator`", rw: true},
	{library: "curator", theirs: "election", ours: "curator/election", named: "Curator LeaderLatch, Election `curator`", lists: true},
	{library: "curator", theirs: "semaphore", ours: "curator/semaphore", named: "Curator InterProcessSemaphoreV2, Semaphore `curator`, 2 permits"},
	{library: "curator", theirs: "counter", ours: "curator/counter", named: "Curator DistributedAtomicLong, Counter `curator`", free: true},
	{library: "curator", theirs: "queue", ours: "curator/queue", named: "Curator SimpleDistributedQueue, Queue `curator`", free: true},
	{library: "curator", theirs: "rounds", ours: "curator/rounds", named: "Curator DistributedDoubleBarrier, DoubleBarrier `curator`, 4 members", meet: true},
	{library: "kazoo", theirs: "lock", ours: "kazoo/lock", named: "kazoo Lock, Lock `kazoo`", lists: true},
	{library: "kazoo", theirs: "rw", ours: "kazoo/rw", named: "kazoo ReadLock and WriteLock, SharedLock `kazoo`", rw: true, stops: true},
	{library: "kazoo", theirs: "election", ours: "kazoo/election", named: "kazoo Election, Election `kazoo`", lists: true},
	{library: "kazoo", theirs: "semaphore", ours: "kazoo/semaphore", named: "kazoo Semaphore, Semaphore `kazoo`, 2 permits", lists: true},
	{library: "kazoo", theirs: "counter", ours: "kazoo/counter", named: "kazoo Counter, Counter `kazoo`", free: true},
	{library: "kazoo", theirs: "group", ours: "kazoo/group", named: "kazoo Party, Group `kazoo`", free: true},
	{library: "kazoo", theirs: "queue", ours: "kazoo/queue", named: "kazoo Queue, Queue `kazoo`", free: true},
	{library: "kazoo", theirs: "rounds", ours: "kazoo/rounds", named: "kazoo DoubleBarrier, DoubleBarrier `kazoo`, 4 members", meet: true},
}

// TestEachDialectMeetsItsLibrary: each dialect of each grant appears in a pair.
func TestEachDialectMeetsItsLibrary(t *testing.T) {
	recipe := map[string]string{
		"shared lock for reading": "rw", "shared lock for writing": "rw", "membership": "group",
		"delivery": "queue", "delivery by priority": "queue", "passage": "rounds",
	}
	for _, w := range grants.All() {
		for _, d := range w.Dialects {
			ours := string(d) + "/" + cmp.Or(recipe[w.Name], w.Name)
			missing := !slices.ContainsFunc(pairs, func(p pair) bool { return p.ours == ours })
			if missing && d != recipes.ZooKeeper && ours != "curator/group" { // in that recipe, any ephemeral child is a member
				t.Errorf("no pair has %s, for the %s", ours, w.Name)
			}
		}
	}
}

// TestInterop lets two processes of another library and two of ours contend for one path,
// and kills a holder of each library in turn. A witness outside ZooKeeper notices if two contenders
// hold at once that should exclude each other. Turns must be in the order in which the contenders
// joined, and no pause may last as long as a session timeout.
func TestInterop(t *testing.T) {
	ensembletest.Require(t)
	for _, p := range pairs {
		lasts := 2 * time.Second
		if testall.On() && !p.free && !p.meet {
			lasts = 5 * time.Second
		}
		asked, err := strconv.Atoi(os.Getenv(secondsEnv))
		long := err == nil
		if long {
			lasts = time.Duration(asked) * time.Second
		}
		t.Run(p.library+" "+p.theirs+" and "+strings.ReplaceAll(p.ours, "/", " "), func(t *testing.T) {
			t.Parallel()
			m := newMatch(t, p)
			m.play(lasts,
				m.side(p.library, p.theirs),
				side{"ours", []string{os.Args[0], m.server, millis, p.ours, m.path, string(m.witness)}},
			)
			if p.theirs == "queue" {
				m.count(recipes.Dialect(filepath.Dir(p.ours)))
			}
			m.judge(lasts, long)
		})
	}
}

func newMatch(t *testing.T, p pair) *match {
	t.Helper()
	m := &match{
		t: t, pair: p, server: ensembletest.Shared(t).Addrs()[0], path: "/interop-" + uuid.NewString(), witness: witness(t.TempDir()),
		turns: map[string]int{}, seen: map[int]string{}, put: map[string]int{}, taken: map[string]int{}, killedAs: map[string]int{}, order: order{waiting: map[int64]int64{}},
	}
	must.Do(t, os.WriteFile(m.witness.file("counter"), nil, 0o600))
	return m
}

var millis = strconv.Itoa(int(sessionTimeout.Milliseconds()))
