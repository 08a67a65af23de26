package interop_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// sample is a measurement that each round repeats.
type sample struct {
	servers    int
	workload   string
	contenders int
	lock       string
}

type samples map[sample][]float64

func (s samples) add(of sample, rate float64) { s[of] = append(s[of], rate) }

// compared lists the ratios of locks under contention.
var compared = []ratio{
	{"cycle", "handoff", "go-zookeeper"},
	{"cycle", "handoff", "curator"},
	{"cycle", "handoff", "kazoo"},
	{"cycle", "plugin-handoff", "go-zookeeper"},
	{"cycle", "plugin-handoff", "relay-handoff"},
	{"cycle", "handoff", "plain"},
	{"cycle", "go-zookeeper", "plain"},
	{"drain", "handoff", "floor"},
	{"drain", "handoff", "handover"},
	{"many", "handoff", "handover"},
	{"acquire", "handoff", "handover"},
}

// besides are the workloads of BenchmarkRecipes and BenchmarkHolds, each compared with all peers.
// Less is better in the last five.
var besides = []string{
	"acquire", "many", "semaphore", "shared", "barrier", "put", "take", "failover",
	"idle, server", "idle, client", "held after", "hold, server", "hold, client",
}

// ratio compares two locks with the same number of contenders.
type ratio struct{ workload, lock, to string }

func allCompared() []ratio {
	all := slices.Clone(compared)
	for _, workload := range besides {
		for _, lock := range []string{"handoff", "plugin-handoff"} {
			for _, to := range []string{"go-zookeeper", "curator", "kazoo"} {
				all = append(all, ratio{workload, lock, to})
			}
		}
		all = append(all, ratio{workload, "plugin-handoff", "handoff"}, ratio{workload, "plugin-handoff", "relay-handoff"})
	}
	return all
}

// ratios returns a table of ratios. Both rates of a ratio are of the same round. The table
// shows their median, the smallest and the largest.
func (s samples) ratios() string {
	var out strings.Builder
	fmt.Fprint(&out, "\n| servers | workload | contenders | ratio | median | smallest - largest |\n|---:|---|---:|---|---:|---|\n")
	row := func(a, b sample, contenders, ratio string) {
		var each []float64
		for round := range min(len(s[a]), len(s[b])) {
			each = append(each, s[a][round]/s[b][round])
		}
		if len(each) > 0 {
			slices.Sort(each)
			fmt.Fprintf(&out, "| %d | %s | %s | %s | %.2f | %.2f - %.2f |\n", a.servers, a.workload, contenders, ratio, median(each), each[0], each[len(each)-1])
		}
	}
	for _, c := range allCompared() {
		for _, a := range s.of(c.workload, c.lock) {
			b := a
			b.lock = c.to
			row(a, b, fmt.Sprint(a.contenders), c.lock+" : "+c.to)
		}
	}
	for _, lock := range []string{"handoff", "plain"} {
		for _, a := range s.of("cycle", lock) {
			if b := a; a.contenders == 10000 {
				b.contenders = 100
				row(a, b, "10000 : 100", lock)
			}
		}
	}
	return out.String()
}

// of returns the samples of one lock. The keys are servers and contenders.
func (s samples) of(workload, lock string) (found []sample) {
	for k := range s {
		if k.workload == workload && k.lock == lock {
			found = append(found, k)
		}
	}
	slices.SortFunc(found, func(a, b sample) int {
		if a.servers != b.servers {
			return a.servers - b.servers
		}
		return a.contenders - b.contenders
	})
	return found
}

// median returns the median of a sorted list.
func median(sorted []float64) float64 {
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

func TestRatiosAreOfOneRound(t *testing.T) {
	s := samples{}
	for _, round := range []struct{ handoff, other float64 }{{300, 100}, {800, 400}, {50, 50}, {10, 4}} {
		s.add(sample{3, "cycle", 100, "handoff"}, round.handoff)
		s.add(sample{3, "cycle", 100, "go-zookeeper"}, round.other)
		s.add(sample{1, "drain", 1000, "handoff"}, 3*round.other)
		s.add(sample{1, "drain", 1000, "floor"}, 4*round.other)
		s.add(sample{3, "cycle", 10000, "handoff"}, round.handoff/2)
		s.add(sample{1, "take", 1, "plugin-handoff"}, round.handoff)
		s.add(sample{1, "take", 1, "kazoo"}, 2*round.other)
	}
	const want = `
| servers | workload | contenders | ratio | median | smallest - largest |
|---:|---|---:|---|---:|---|
| 3 | cycle | 100 | handoff : go-zookeeper | 2.25 | 1.00 - 3.00 |
| 1 | drain | 1000 | handoff : floor | 0.75 | 0.75 - 0.75 |
| 1 | take | 1 | plugin-handoff : kazoo | 1.12 | 0.50 - 1.50 |
| 3 | cycle | 10000 : 100 | handoff | 0.50 | 0.50 - 0.50 |
`
	if got := s.ratios(); got != want {
		t.Errorf("ratios:\n%s\nwant:\n%s", got, want)
	}
}
