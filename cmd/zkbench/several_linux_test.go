package main

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/ensemble"
	"github.com/zkrecipes/zkrecipes/internal/testing/ensembletest"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/partition"
	"github.com/zkrecipes/zkrecipes/internal/unit"
)

// severalEnv requires load generators on hosts of their own. .ci/suite bench-join sets it.
const severalEnv = "ZKRECIPES_BENCH_JOIN"

const (
	serverHosts = 3
	workerHosts = 3
	// oneWay is half of the round-trip time between two hosts.
	oneWay = 500 * time.Microsecond
)

// several is three ZooKeeper servers and room for three workers, each in a network of its
// own.
type several struct {
	*testing.T
	network *partition.Network
	servers string // for -servers
	zkbench string
	meeting int
}

// newSeveral starts the servers and networks. Without the permission it skips the test with a
// message, or fails it if severalEnv is set.
func newSeveral(t *testing.T) *several {
	t.Helper()
	if os.Getenv(severalEnv) == "" {
		t.Skipf("SKIPPED: it takes minutes, and a machine of its own; run .ci/suite bench-join")
	}
	network, err := partition.New(serverHosts + workerHosts)
	if err != nil {
		t.Fatalf("NOT RUN: root on Linux with /dev/net/tun is needed: %v", err)
	}
	t.Cleanup(func() {
		if err := network.Close(); err != nil {
			t.Error(err)
		}
	})
	cfg := ensemble.Config{Servers: serverHosts, Properties: map[string]string{"maxClientCnxns": "0"}}
	for i := range serverHosts + workerHosts {
		network.Out(i, partition.Weather{Delay: oneWay})
		if h := network.Host(i); i < serverHosts {
			cfg.Hosts = append(cfg.Hosts, ensemble.Host{IP: h.IP(), Do: h.Do})
		}
	}
	zkbench := must.Get(exec.LookPath("zkbench"))(t) // the test binary, by testscript.Main
	return &several{T: t, network: network, zkbench: zkbench, servers: strings.Join(ensembletest.Start(t, cfg).Addrs(), ",")}
}

type process struct {
	cmd     *exec.Cmd
	records string
	stdout  bytes.Buffer
	stderr  *said
	ended   chan struct{} // closed when err and at are set
	err     error
	at      time.Time
}

// said is what a process writes to stderr while it runs.
type said struct {
	mu      sync.Mutex
	text    bytes.Buffer
	changed chan struct{} // closed and replaced at each write
}

func (s *said) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.changed)
	s.changed = make(chan struct{})
	return s.text.Write(p)
}

func (s *said) read() (text string, changed <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String(), s.changed
}

func (s *several) start(worker int, args ...string) *process {
	s.Helper()
	p := &process{records: filepath.Join(s.TempDir(), "records.jsonl"), ended: make(chan struct{}), stderr: &said{changed: make(chan struct{})}}
	args = append([]string{"run", "-servers", s.servers, "-recipe", "lock", "-strategy", "handoff", "-record", p.records}, args...)
	p.cmd = exec.Command(s.zkbench, args...)
	p.cmd.Stdout, p.cmd.Stderr = &p.stdout, p.stderr
	if err := s.network.Host(serverHosts + worker).Do(p.cmd.Start); err != nil {
		s.Fatal(err)
	}
	go func() {
		p.err = p.cmd.Wait()
		p.at = time.Now()
		close(p.ended)
	}()
	s.Cleanup(func() { p.kill() })
	return p
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.ended
}

// crew returns the flags of processes that meet at a path that no other processes use.
func (s *several) crew(args ...string) []string {
	s.meeting++
	return append(args, "-join", fmt.Sprintf("/zkbench/meet-%d", s.meeting), "-workers", fmt.Sprint(workerHosts))
}

func (s *several) startAll(args []string) (all []*process) {
	for i := range workerHosts {
		all = append(all, s.start(i, args...))
	}
	return all
}

func (s *several) awaitSaid(p *process, what string) {
	s.Helper()
	for {
		text, changed := p.stderr.read()
		if strings.Contains(text, what) {
			return
		}
		select {
		case <-changed:
		case <-p.ended:
			s.Fatalf("a worker ended (%v) and has not said %q:\n%s", p.err, what, text)
		}
	}
}

// measured returns the medians of the results of the processes, by unit. One of them has all
// results.
func (s *several) measured(all ...*process) map[string]float64 {
	s.Helper()
	values := map[string][]float64{}
	for _, p := range all {
		<-p.ended
		text, _ := p.stderr.read()
		if p.err != nil {
			s.Fatalf("%v: %s", p.err, text)
		}
		if info, err := os.Stat(p.records); err != nil || info.Size() == 0 {
			continue // the first worker has the results
		}
		runs, err := readRuns(p.records)
		if err != nil {
			s.Fatal(err)
		}
		for _, r := range runs[0].Records {
			for _, m := range r.Metrics() {
				values[m.Unit] = append(values[m.Unit], m.Value)
			}
		}
	}
	medians := map[string]float64{}
	for of, v := range values {
		slices.Sort(v)
		medians[of] = v[len(v)/2]
	}
	return medians
}

// TestSeveralMeasureWhatOneMeasures compares a load of three processes on three hosts with
// the same load of one.
func TestSeveralMeasureWhatOneMeasures(t *testing.T) {
	s := newSeveral(t)
	const count, tolerance, most = "5", 0.1, 5
	for _, c := range []struct {
		workload string
		together string // the flags of each of three
		alone    string // the flags of one
		units    []string
	}{
		{"drain", "-contenders 20", "-contenders 60", []string{unit.Handoffs, unit.Writes, unit.Events}},
		{"cycle", "-contenders 4 -duration 10s", "-contenders 12 -duration 10s", []string{unit.Handoffs, unit.Writes, unit.Events}},
		{"open", "-contenders 10 -rate 30 -duration 2s", "-contenders 30 -rate 90 -duration 2s", []string{unit.Acquired, unit.Writes}},
		{"many", "-contenders 2 -lines 2 -duration 2s", "-contenders 2 -lines 6 -duration 2s", []string{unit.Handoffs, unit.Writes}},
	} {
		t.Run(c.workload, func(t *testing.T) {
			s := &several{t, s.network, s.servers, s.zkbench, 100 * len(c.workload)}
			common := []string{"-workload", c.workload, "-count", count}
			// A disturbance may hit either side, so a difference counts only if it is found
			// in each repetition.
			var differences []string
			for range most {
				together := s.measured(s.startAll(s.crew(append(common, strings.Fields(c.together)...)...))...)
				alone := s.measured(s.start(0, append(common, strings.Fields(c.alone)...)...))
				differences = nil
				for _, of := range c.units {
					t.Logf("%s: %.4g of three processes, %.4g of one", of, together[of], alone[of])
					if math.Abs(together[of]/alone[of]-1) > tolerance || alone[of] == 0 {
						differences = append(differences, of)
					}
				}
				if len(differences) == 0 {
					return
				}
			}
			t.Errorf("%v differ by more than %.0f %%, %d times", differences, 100*tolerance, most)
		})
	}
}

// Whenever a worker dies, the others end and name it.
func TestAWorkerThatDiesEndsTheOthers(t *testing.T) {
	s := newSeveral(t)
	const patience = 10 * time.Second
	for i := range 8 {
		// The delays cover the meeting, the opening of sessions, the warm-ups and several
		// trials.
		after := time.Duration(i) * 700 * time.Millisecond
		all := s.startAll(s.crew("-workload", "drain,cycle", "-contenders", "50", "-count", "50", "-duration", "500ms"))
		for _, p := range all {
			s.awaitSaid(p, "worker 1 writes the results")
		}
		time.Sleep(after) // not a wait: it chooses the moment of the kill
		victim := all[i%len(all)]
		victim.kill()
		killed := time.Now()
		for _, p := range all {
			if p == victim {
				continue
			}
			<-p.ended
			text, _ := p.stderr.read()
			took := p.at.Sub(killed)
			t.Logf("killed after %v: the others ended %v later", after, took.Round(time.Millisecond))
			if took > patience {
				t.Errorf("it took %v; want %v at most", took, patience)
			}
			if p.cmd.ProcessState.ExitCode() != 1 || !strings.Contains(text, fmt.Sprintf("process %d", victim.cmd.Process.Pid)) {
				t.Errorf("exit code %d, and it does not name process %d:\n%s", p.cmd.ProcessState.ExitCode(), victim.cmd.Process.Pid, text)
			}
		}
	}
}
