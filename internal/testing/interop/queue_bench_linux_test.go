package interop_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/ensemble"
	"github.com/zkrecipes/zkrecipes/internal/testing/ensembletest"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/peers"
	"github.com/zkrecipes/zkrecipes/internal/testing/watchdog"
)

// BenchmarkLongQueue measures a queue of many elements. One producer puts them, and four consumers take
// them for ZKRECIPES_QUEUE_SECONDS at most. It measures how fast they are, how long it takes to count
// the elements and to take the first, and the peak of the memory of client and server. What another
// library cannot do is missing. Each queue is on a server of its own.
//
//	.ci/suite bench-queue
func BenchmarkLongQueue(b *testing.B) {
	n := numbers(b, "ZKRECIPES_QUEUE", "1000")[0]
	limit := time.Duration(numbers(b, "ZKRECIPES_QUEUE_SECONDS", "300")[0]) * time.Second
	only := regexp.MustCompile(os.Getenv("ZKRECIPES_QUEUE_WAYS"))
	for _, w := range queueWays(b) {
		if !only.MatchString(w.name) {
			continue
		}
		b.Run(fmt.Sprintf("elements=%d/queue=%s", n, w.name), func(b *testing.B) {
			e := ensembletest.Start(b, ensemble.Config{Servers: 1, HeapMiB: 4096})
			done := w.measure(b, e.Addrs(), n, limit)
			for _, m := range []struct {
				what, unit string
				of         func(used) float64
			}{
				{"put", "put/s", used.rate},
				{"fill", "put-many/s", used.rate},
				{"len", "len-s", func(u used) float64 { return u.took.Seconds() }},
				{"take", "first-s", func(u used) float64 { return u.first.Seconds() }},
				{"take", "taken", func(u used) float64 { return float64(u.count) }},
				{"take", "take-s", func(u used) float64 { return u.took.Seconds() }},
				{"take", "client-MiB", func(u used) float64 { return float64(u.memory) }},
			} {
				if u, ok := done[m.what]; ok {
					b.ReportMetric(m.of(u), m.unit)
				}
			}
			b.ReportMetric(float64(peak(b, e.Server(0).Pid())), "server-MiB")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// TestAQueueIsTaken runs the benchmark with few elements.
func TestAQueueIsTaken(t *testing.T) {
	cfg := ensembletest.Quick(1)
	addrs := ensembletest.Start(t, cfg).Addrs()
	for _, w := range queueWays(t) {
		t.Run(w.name, func(t *testing.T) {
			const n = 50
			done := w.measure(t, addrs, n, watchdog.Patience)
			for what, count := range map[string]int{"put": 10, "fill": n - 10, "len": n, "take": n} {
				if done[what].count != count {
					t.Errorf("%s: %d elements, not %d", what, done[what].count, count)
				}
			}
		})
	}
}

// measure fills the queue with n elements, and takes them for limit at most. The library's own
// Put is measured with one element in a hundred. PutMany puts the others, in the dialect of the
// library that takes them. It returns what was used to put, fill, len and take.
func (w queueWay) measure(tb testing.TB, addrs []string, n int, limit time.Duration) map[string]used {
	single := max(n/100, min(n, 10))
	p := w.start(tb, w.command, addrs, w.sessions)
	filler := p
	if w.dialect != "" {
		filler = w.start(tb, ourQueue(w.dialect, ""), addrs, 1)
	}
	done := map[string]used{}
	for _, line := range []string{
		fmt.Sprintf("put %d", single),
		fmt.Sprintf("fill %d", n-single),
		"len",
		strings.TrimSpace(fmt.Sprintf("take %d %d %s", n, int(limit.Seconds()), w.batch)),
	} {
		by := p
		if strings.HasPrefix(line, "fill") {
			by = filler
		}
		u, err := by.do(tb, line)
		switch {
		case err == nil:
			done[u.what] = u
		case by == p && w.dialect != "": // a library may fail with so many elements
			tb.Log(err)
			p = w.start(tb, w.command, addrs, w.sessions)
		default:
			tb.Fatal(err)
		}
	}
	return done
}

// queueWay is a queue that BenchmarkLongQueue measures.
type queueWay struct {
	name     string
	command  []string
	sessions int
	dialect  string // of the elements that another library takes
	batch    string // the most elements to take at once; "": one, the only choice with other libraries
}

func queueWays(tb testing.TB) []queueWay {
	plugin := filepath.Join(tb.TempDir(), "zkrecipes-plugin")
	if out, err := exec.Command("go", "build", "-o", plugin, "../../../cmd/zkrecipes-plugin").CombinedOutput(); err != nil {
		tb.Fatalf("%v:\n%s", err, out)
	}
	return []queueWay{
		{"ours", ourQueue("zookeeper", ""), consumers, "", ""},
		{"ours-batch", ourQueue("zookeeper", ""), consumers, "", "1000"},
		{"ours-shared", ourQueue("zookeeper", ""), 1, "", ""},
		{"ours-shared-batch", ourQueue("zookeeper", ""), 1, "", "1000"},
		{"plugin", ourQueue("zookeeper", plugin), consumers, "", ""},
		{"plugin-batch", ourQueue("zookeeper", plugin), consumers, "", "1000"},
		{"plugin-shared", ourQueue("zookeeper", plugin), 1, "", ""},
		{"plugin-shared-batch", ourQueue("zookeeper", plugin), 1, "", "1000"},
		{"kazoo", installed(tb)(peers.Kazoo(tb, "drain.py")), consumers, "kazoo", ""},
		{"curator", installed(tb)(peers.Curator(tb, classes, "Drain")), consumers, "curator", ""},
	}
}

// ourQueue is the command that runs queueProgram.
func ourQueue(dialect, plugin string) []string {
	return []string{"env", fmt.Sprintf("%s=%s %s", queueEnv, dialect, plugin), os.Args[0]}
}

type queueProcess struct {
	name  string
	cmd   *exec.Cmd
	stdin io.Writer
	lines *bufio.Scanner
	ended bool // by itself
}

// start starts a command with the arguments of drain.py.
func (w queueWay) start(tb testing.TB, command, addrs []string, sessions int) *queueProcess {
	tb.Helper()
	cmd := exec.Command(command[0], append(command[1:], strings.Join(addrs, ","), "30000", strconv.Itoa(sessions), "/queue-"+w.name)...)
	cmd.Stderr = os.Stderr
	stdin := must.Get(cmd.StdinPipe())(tb)
	p := &queueProcess{name: w.name, cmd: cmd, stdin: stdin, lines: bufio.NewScanner(must.Get(cmd.StdoutPipe())(tb))}
	must.Do(tb, cmd.Start())
	tb.Cleanup(func() {
		if tb.Failed() {
			_ = cmd.Process.Kill()
		}
		_ = stdin.Close()
		if err := cmd.Wait(); err != nil && !tb.Failed() && !p.ended {
			tb.Error(err)
		}
	})
	if !p.lines.Scan() || p.lines.Text() != "ready" {
		tb.Fatalf("%q said %q", command, p.lines.Text())
	}
	return p
}

// used is what a process reports about a line.
type used struct {
	what        string
	count       int
	took, first time.Duration
	memory      int // the peak so far, in MiB, of a plugin too
}

func (u used) rate() float64 { return float64(u.count) / u.took.Seconds() }

// do makes the process carry out a line. The process ends if it cannot.
func (p *queueProcess) do(tb testing.TB, line string) (u used, err error) {
	tb.Helper()
	must.Get(fmt.Fprintln(p.stdin, line))(tb)
	if !p.lines.Scan() {
		p.ended = true
		return used{}, fmt.Errorf("%s: the process has ended in %q", p.name, line)
	}
	must.Get(fmt.Sscan(p.lines.Text(), &u.what, &u.count, (*int64)(&u.took), (*int64)(&u.first)))(tb)
	u.memory = peaks(tb, p.cmd.Process.Pid)
	tb.Logf("%s: %s: %d in %v, %.0f/s, the first after %v; the client's memory is %d MiB", p.name, line, u.count, u.took, u.rate(), u.first, u.memory)
	return u, nil
}

// peaks returns the peak of the memory of a process and its children, which may be a plugin.
func peaks(tb testing.TB, pid int) int {
	tb.Helper()
	sum := peak(tb, pid)
	threads := must.Get(filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid)))(tb)
	for _, thread := range threads {
		children, _ := os.ReadFile(thread) // the thread may have ended
		for child := range strings.FieldsSeq(string(children)) {
			sum += peaks(tb, must.Get(strconv.Atoi(child))(tb))
		}
	}
	return sum
}

var highWater = regexp.MustCompile(`VmHWM:\s+(\d+) kB`)

// peak returns the peak of a process's resident memory in MiB.
func peak(tb testing.TB, pid int) int {
	tb.Helper()
	status := must.Get(os.ReadFile(fmt.Sprintf("/proc/%d/status", pid)))(tb)
	return must.Get(strconv.Atoi(string(highWater.FindSubmatch(status)[1])))(tb) / 1024
}
