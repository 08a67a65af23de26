package simulation

import (
	"context"
	"fmt"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// sessionTimeout is the smallest timeout that the servers grant.
const sessionTimeout = 4 * time.Second

// Report is the result of a run.
type Report struct {
	Seed       uint64
	Scenario   string
	Virtual    time.Duration
	Turns      int
	Faults     map[string]int
	Violations []string
	Trace      string
}

// run simulates one seed. It must run in a bubble of testing/synctest.
func (sc scenario) run(seed uint64) Report {
	w := newWorld(seed, sc.like)
	open := sc.open
	if open == nil {
		open = openDirectly
	}
	calm, cease := context.WithCancel(context.Background())
	defer cease()
	w.calm = calm
	w.trace.add("world", "seed %d: %s, %d followers", seed, sc.name, len(w.followers))
	operator := w.operator()
	w.outside = operator
	w.prepare(sc, operator)
	if sc.line != "" {
		w.lines = []string{sc.line}
	}
	for i := range 2 + w.chance.below(4) {
		w.clients = append(w.clients, newClient(w, i+1))
	}
	g := sc.begin(w)
	if !sc.quiet {
		w.server.SetFault((&requestFaults{world: w, percent: w.chance.below(4), streams: make(map[string]*stream)}).decide)
	}
	var running, faulty sync.WaitGroup
	for _, c := range w.clients {
		running.Go(func() {
			_ = sleep(c.stop, c.chance.between(0, time.Second))
			c.run(open, g.turn)
		})
		if !sc.quiet {
			faulty.Go(func() { w.disturbClient(c) })
		}
		if sc.hop {
			faulty.Go(func() { w.disturbPlugin(c) })
		}
		if sc.dies {
			faulty.Go(func() { w.killPlugins(c) })
		}
	}
	if !sc.quiet {
		faulty.Go(w.disturbServers)
	}

	_ = sleep(context.Background(), w.chance.between(10*time.Second, time.Minute))
	cease()
	faulty.Wait()
	for _, c := range w.clients {
		c.heal()
	}
	w.trace.add("world", "faults end")
	w.await(sc)
	w.trace.add("world", "clients stop")
	for _, c := range w.clients { // one after the other, so that their last requests do not mix
		c.quit()
		_ = sleep(context.Background(), w.chance.between(20*time.Millisecond, 100*time.Millisecond))
	}
	running.Wait()
	if g.check != nil {
		g.check(context.Background(), operator)
	}
	if sc.open != nil && !sc.hop && !sc.dies { // go-zookeeper leaves connections open, each with a goroutine
		for _, h := range w.hosts {
			if h.name != operatorName {
				h.close()
			}
		}
	}
	w.finish(sc, operator)

	r := Report{Seed: seed, Scenario: sc.name, Virtual: time.Since(w.trace.start), Faults: w.faults, Violations: w.violations, Trace: w.trace.String()}
	for _, c := range w.clients {
		r.Turns += c.turns
	}
	return r
}

const operatorName = "operator"

// operator opens a session that only faults of the servers affect.
func (w *World) operator() recipes.Client {
	s, err := zookeeper.Dialer(newHost(w, operatorName).Dial).Open(context.Background(), recipes.SessionConfig{
		Servers: []string{"server"}, SessionTimeout: 10 * sessionTimeout, MaxPacket: 64 << 10,
	})
	if err != nil {
		panic(err) // there are no faults yet
	}
	return s
}

// prepare creates the parents of the journals. In some runs it sets the next sequence number of the
// wait queue so high that the numbers soon wrap.
func (w *World) prepare(sc scenario, operator recipes.Recipes) {
	set := func(p string) {
		b, err := operator.Barrier(p)
		if err == nil {
			err = b.Set(context.Background(), nil)
		}
		if err != nil {
			w.fail("operator", "%v", err)
		}
	}
	for _, p := range append([]string{""}, sc.paths...) {
		set(journalOf(p))
	}
	if sc.line != "" && !sc.unwrapped && w.chance.chance(20) {
		set(sc.line)
		next := int32(math.MaxInt32 - w.chance.below(60))
		w.fault("servers", "wrap", "the next number of %s is %d", sc.line, next)
		if err := w.server.SetSequence(sc.line, next); err != nil {
			w.fail("servers", "%v", err)
		}
	}
}

// progressBound bounds the two turns of each client after the end of faults. It is long enough for
// the sessions of dead processes to expire, and for all clients to take their turns.
const progressBound = 10 * sessionTimeout

// await waits until each client has made progress since the end of faults.
func (w *World) await(sc scenario) {
	deadline := time.Now().Add(progressBound)
	for {
		waiting := ""
		for _, c := range w.clients {
			c.mu.Lock()
			if c.since < 2 && (sc.excused == nil || !sc.excused(c)) {
				waiting += fmt.Sprintf(" %s (%d turns)", c.name, c.since)
			}
			c.mu.Unlock()
		}
		if waiting == "" {
			return
		}
		if time.Now().After(deadline) {
			w.fail("world", "no progress within %v:%s", progressBound, waiting)
			return
		}
		_ = sleep(context.Background(), 50*time.Millisecond)
	}
}

// finish checks that nothing is left after all clients have stopped.
func (w *World) finish(sc scenario, operator recipes.Session) {
	if err := operator.Close(context.Background()); err != nil {
		w.fail("operator", "%v", err)
	}
	_ = sleep(context.Background(), 2*sessionTimeout)
	for _, p := range sc.paths {
		w.checkJournal(p)
	}
	if left := w.server.Sessions(); len(left) > 0 {
		w.fail("servers", "sessions are left: %#x", left)
	}
	if n := w.server.Watches(); n > 0 {
		w.fail("servers", "%d watches are left", n)
	}
	for _, n := range w.server.Tree() {
		counts := strings.HasSuffix(n.Path, "-deletions") // counts the deletions in a directory, and remains as long as the directory
		if n.Stat.EphemeralOwner != 0 || strings.Contains(n.Path, "/_c_") && !counts {
			w.fail("servers", "%s is left", n.Path)
		}
	}
	if err := w.server.Close(); err != nil {
		w.fail("servers", "%v", err)
	}
}

// scenario is the work of the clients of a run.
type scenario struct {
	name  string
	paths []string // of the wait queues whose grants have a journal
	begin func(*World) game
	line  string // path of the wait queue; "" if there is none

	// unwrapped: the sequence numbers of line do not wrap. The recipe refuses contenders near
	// the end of the numbers.
	unwrapped bool

	open  opener // nil: openDirectly
	hop   bool   // with faults between application and plugin
	dies  bool   // plugins die or are replaced, and others resume their sessions
	quiet bool   // without faults, for defects that show without them
	like  zkserver.Release

	// excused reports whether a client need not make progress, because another library may block
	// it for ever. nil: every client must make progress.
	excused func(*client) bool
}

// game is a scenario in one run.
type game struct {
	turn  turn
	check func(ctx context.Context, operator recipes.Client) // runs at the end, without faults; may be nil
}

// turn uses a recipe once. A client takes turns until it must stop. The error of a turn is a
// violation only if it is not expected.
type turn func(ctx context.Context, c *client, s recipes.Client) error

// scenarios are chosen by the seed. Adding or removing one changes the scenario of every seed.
var scenarios = []scenario{
	{name: "lock", line: "/lock", paths: []string{"/lock"}, begin: locks},
	{name: "election", line: "/election", paths: []string{"/election"}, begin: elections},
	{name: "semaphore", line: "/semaphore", begin: semaphores},
	{name: "shared lock", line: "/shared", paths: []string{"/shared"}, begin: sharedLocks},
	{name: "priority lock", line: "/priority", paths: []string{"/priority"}, begin: priorityLocks},
	{name: "queue", begin: queues},
	{name: "double barrier", line: "/barrier", begin: doubleBarriers},
	{name: "two-phase commit", begin: transactions},
	{name: "lock through a plugin", line: "/lock", paths: []string{"/lock"}, begin: locks, open: openThroughPlugin, hop: true},
	{name: "counter", begin: counters},
	// The operator does not delete names. A guarded write cannot distinguish a new znode with
	// the same name from its own while both have the same version.
	{name: "names", paths: []string{namesPath}, begin: names},
	{name: "barrier", begin: barriers},
	{name: "latch", begin: latches},
	{name: "group", line: groupPath, begin: groups},
	{name: "configuration", begin: configurations},
	{name: "priority queue", begin: priorityQueues},
	{name: "queue through a plugin", begin: queues, open: openThroughPlugin, hop: true},
	{name: "counter through a plugin", begin: counters, open: openThroughPlugin, hop: true},
	{name: "shared lock through a plugin", line: "/shared", paths: []string{"/shared"}, begin: sharedLocks, open: openThroughPlugin, hop: true},
	{name: "configuration through a plugin", begin: configurations, open: openThroughPlugin, hop: true},
	surviving(scenario{name: "lock", line: "/lock", paths: []string{"/lock"}, begin: twice(locks)}),
	surviving(scenario{name: "election", line: "/election", paths: []string{"/election"}, begin: twice(elections)}),
	surviving(scenario{name: "semaphore", line: "/semaphore", begin: twice(semaphores)}),
	surviving(scenario{name: "shared lock", line: "/shared", paths: []string{"/shared"}, begin: twice(sharedLocks)}),
	surviving(scenario{name: "priority lock", line: "/priority", paths: []string{"/priority"}, begin: twice(priorityLocks)}),
	surviving(scenario{name: "names", paths: []string{namesPath}, begin: twice(names)}),
}
