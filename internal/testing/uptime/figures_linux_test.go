package uptime_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/host"
	"github.com/zkrecipes/zkrecipes/internal/ensemble"
	"github.com/zkrecipes/zkrecipes/internal/fourletter"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/watchdog"
)

// figures are the quantities that a leak would increase.
type figures [11]int64

const (
	hostGoroutines = iota
	hostFiles
	hostHeap
	pluginGoroutines
	pluginFiles
	pluginHeap
	pluginResident
	watches
	ephemerals
	znodes
	connections
)

var names = [len(figures{})]string{
	"goroutines of the host", "descriptors of the host", "KiB of the host's heap",
	"goroutines of the plugin", "descriptors of the plugin", "KiB of the plugin's heap", "KiB of the plugin resident",
	"watches on the server", "ephemerals", "znodes", "connections",
}

func (f figures) String() string {
	var all []string
	for i, n := range f {
		all = append(all, fmt.Sprint(n, " ", names[i]))
	}
	return strings.Join(all, ", ")
}

// The growth of each figure that does not count as a leak.
var (
	// working applies while sessions work. A call in flight takes a goroutine or two in the host
	// and in the plugin, and a watch, an ephemeral and a znode on the server. A session that
	// watches has seven streams, and none while it sets them again. How many calls there are
	// depends on the load of the machine. A leak in each turn, or in each session at each upgrade,
	// adds 1,000 in a minute. Descriptors and connections change with the sessions that come and
	// go. The memory of a process depends on when its garbage is collected.
	working = figures{
		hostGoroutines: 2 * sessions, hostFiles: 3, hostHeap: 4 << 10,
		pluginGoroutines: 2 * sessions, pluginFiles: comers, pluginHeap: 8 << 10, pluginResident: 32 << 10,
		watches: sessions, ephemerals: sessions, znodes: 2 * sessions, connections: comers,
	}
	// closed applies when all sessions are closed: only the queue's elements, the keys, and the
	// parents of znodes remain. The plugin keeps 16 goroutines for the next calls, and the runtime
	// keeps memory.
	closed = figures{
		hostGoroutines: 3, hostFiles: 3, hostHeap: 4 << 10,
		pluginGoroutines: 20, pluginFiles: 3, pluginHeap: 8 << 10, pluginResident: 64 << 10,
		znodes: 2 * sessions,
	}
)

// change has the figures before and after.
type change struct{ before, after figures }

// more returns the figures that have increased by more than is allowed.
func (c change) more(allowed figures) (found []string) {
	for i, name := range names {
		if c.after[i] > c.before[i]+allowed[i] {
			found = append(found, fmt.Sprintf("%d %s have become %d", c.before[i], name, c.after[i]))
		}
	}
	return found
}

func (c change) check(t *testing.T, when string, allowed figures) {
	t.Helper()
	for _, what := range c.more(allowed) {
		t.Errorf("%s, %s", when, what)
	}
}

// meter reads the figures of a host, which is this process, of its plugin and of its server.
type meter struct {
	*testing.T
	server     *ensemble.Server
	supervisor *host.Supervisor
	dir        string // of the sockets of plugins
}

// interval waits for an interval that begins now. It returns the figures of the second and of the
// last fifth of the interval. In the first fifth, sessions are opened or resumed.
func (m meter) interval(length time.Duration) change {
	m.Helper()
	const samples = 10
	fifth := length / 5
	time.Sleep(fifth)
	before := m.median(samples, fifth/samples)
	time.Sleep(2 * fifth)
	return change{before, m.median(samples, fifth/samples)}
}

// median returns the median of each figure.
func (m meter) median(samples int, pause time.Duration) (medians figures) {
	m.Helper()
	all := make([]figures, samples)
	for i := range all {
		time.Sleep(pause)
		all[i] = m.sample()
	}
	for i := range medians {
		slices.SortFunc(all, func(a, b figures) int { return int(a[i] - b[i]) })
		medians[i] = all[samples/2][i]
	}
	return medians
}

// sample returns the figures of this moment.
func (m meter) sample() figures {
	m.Helper()
	runtime.GC()
	debug.FreeOSMemory() // collects again, which frees what pools have kept in the first collection
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	pid := m.supervisor.Plugin().PID()
	plugin, _ := m.plugin(pid, false)
	monitor := fourletter.Pairs(must.Get(m.server.Word(watchdog.Bounded(m), "mntr"))(m), "\t")
	count := func(name string) int64 { return must.Get(strconv.ParseInt(monitor[name], 10, 64))(m) }
	return figures{
		hostGoroutines: int64(runtime.NumGoroutine()), hostFiles: m.files("self"), hostHeap: int64(mem.HeapAlloc) >> 10,
		pluginGoroutines: plugin.Goroutines, pluginFiles: m.files(strconv.Itoa(pid)), pluginHeap: plugin.Heap >> 10, pluginResident: m.resident(pid),
		watches: count("zk_watch_count"), ephemerals: count("zk_ephemerals_count"), znodes: count("zk_znode_count"), connections: count("zk_num_alive_connections"),
	}
}

type used struct{ Goroutines, Heap int64 }

// plugin returns what the plugin uses, and on request the stacks of its goroutines.
func (m meter) plugin(pid int, stacks bool) (u used, text []byte) {
	m.Helper()
	conn := must.Get(net.Dial("unix", filepath.Join(m.dir, strconv.Itoa(pid))))(m)
	defer conn.Close()
	d := json.NewDecoder(conn)
	must.Do(m, d.Decode(&u))
	if stacks {
		text = must.Get(io.ReadAll(io.MultiReader(d.Buffered(), conn)))(m)
	}
	return u, text
}

// files returns how many files a process has open.
func (m meter) files(process string) int64 {
	return int64(len(must.Get(os.ReadDir("/proc/" + process + "/fd"))(m)))
}

// resident returns the resident memory of a process in KiB.
func (m meter) resident(pid int) int64 {
	text := must.Get(os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid)))(m)
	var size, pages int64
	must.Get(fmt.Sscan(string(text), &size, &pages))(m)
	return pages * int64(os.Getpagesize()) >> 10
}

// returnsTo waits, after all sessions were closed, until the figures are as before.
func (m meter) returnsTo(before figures) {
	m.Helper()
	for limit := time.Now().Add(watchdog.Patience); ; time.Sleep(100 * time.Millisecond) {
		c := change{before, m.sample()}
		more := c.more(closed)
		if len(more) == 0 {
			m.Logf("after all sessions were closed: %v", c.after)
			return
		}
		if time.Now().After(limit) {
			_, stacks := m.plugin(m.supervisor.Plugin().PID(), true)
			m.Fatalf("after all sessions were closed, %q; the goroutines of the plugin:\n%s", more, stacks)
		}
	}
}
