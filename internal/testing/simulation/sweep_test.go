package simulation

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

var out = flag.String("out", "", "used by the test itself: write the summary to this file")

// summary sums up the runs of several seeds.
type summary struct {
	Seeds   int
	Virtual time.Duration
	Turns   map[string]int // by scenario
	Faults  map[string]int // by kind
	Failed  []failure
}

type failure struct {
	Seed                uint64
	Scenario, Violation string
}

func (s *summary) add(r Report) {
	one := summary{Seeds: 1, Virtual: r.Virtual, Turns: map[string]int{r.Scenario: r.Turns}, Faults: r.Faults}
	for _, v := range r.Violations {
		one.Failed = append(one.Failed, failure{r.Seed, r.Scenario, v})
	}
	s.merge(one)
}

func (s *summary) merge(o summary) {
	s.Seeds += o.Seeds
	s.Virtual += o.Virtual
	if s.Turns == nil {
		s.Turns, s.Faults = make(map[string]int), make(map[string]int)
	}
	for k, n := range o.Turns {
		s.Turns[k] += n
	}
	for k, n := range o.Faults {
		s.Faults[k] += n
	}
	s.Failed = append(s.Failed, o.Failed...)
}

func (s *summary) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d seeds, %.1f simulated hours\n", s.Seeds, s.Virtual.Hours())
	for _, list := range []struct {
		name string
		of   map[string]int
	}{{"turns", s.Turns}, {"faults", s.Faults}} {
		sum := 0
		for _, n := range list.of {
			sum += n
		}
		fmt.Fprintf(&b, "%d %s:", sum, list.name)
		for _, k := range slices.Sorted(maps.Keys(list.of)) {
			fmt.Fprintf(&b, " %s %d,", k, list.of[k])
		}
		b.WriteString("\n")
	}
	return b.String()
}

// sweep simulates n seeds. A process simulates one seed at a time on one processor, so sweep starts
// one process for each processor.
func sweep(t *testing.T, first uint64, n int) *summary {
	if *out != "" || n < 200 {
		return worker(t, first, n)
	}
	var mu sync.Mutex
	var sum summary
	var work sync.WaitGroup
	dir, workers := t.TempDir(), runtime.NumCPU()
	for i := range workers {
		from, to := n*i/workers, n*(i+1)/workers
		work.Go(func() {
			part, err := elsewhere(filepath.Join(dir, strconv.Itoa(i)), first+uint64(from), to-from)
			mu.Lock()
			defer mu.Unlock()
			sum.merge(part)
			if err != nil {
				t.Error(err)
			}
		})
	}
	work.Wait()
	return &sum
}

// worker simulates n seeds in this process. It saves the summary after every 50 seeds, because a
// seed can end the process.
func worker(t *testing.T, first uint64, n int) *summary {
	var sum summary
	for i := range n {
		sum.add(simulate(t, first+uint64(i)))
		if *out != "" && (i%50 == 49 || i == n-1) {
			b, err := json.Marshal(sum)
			if err == nil {
				err = os.WriteFile(*out, b, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	return &sum
}

// elsewhere simulates n seeds in another process.
func elsewhere(file string, first uint64, n int) (sum summary, err error) {
	cmd := exec.Command(os.Args[0], "-test.run=^TestSimulation$", "-test.timeout=2h",
		"-first", strconv.FormatUint(first, 10), "-seeds", strconv.Itoa(n), "-out", file)
	cmd.Env = append(os.Environ(), "GOMAXPROCS=1", "GOGC=400")
	said, failed := cmd.CombinedOutput()
	b, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(b, &sum)
	}
	if sum.Seeds < n || err != nil {
		return sum, fmt.Errorf("after %d of %d seeds from %d: %v, %v\n%s", sum.Seeds, n, first, failed, err, said)
	}
	return sum, nil
}
