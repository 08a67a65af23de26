package interop_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/ensemble"
	"github.com/zkrecipes/zkrecipes/internal/testing/ensembletest"
)

// BenchmarkPeers compares ways to pass a lock on real servers, with a session for each
// contender:
//
//	make bench-peers
//
// In workload cycle each contender acquires and releases in a loop. In workload drain all
// contenders wait, and each releases as soon as it is granted. Each round runs every lock
// once, so that other load on the machine affects all locks alike. Each round starts with a
// different lock. A round before the first one warms up and is not counted.
//
// No drain can be faster than floor: one committed delete and one watch event, after which
// the next session deletes. A drain by handoff cannot be faster than handover, which deletes
// by the transaction of a release. No cycle can be faster than plain, which sends the
// fewest requests that a wait queue needs.
func BenchmarkPeers(b *testing.B) {
	measured := samples{}
	for _, servers := range numbers(b, "ZKRECIPES_PEERS_SERVERS", "1,3") {
		addrs := ensembletest.Start(b, ensemble.Config{Servers: servers, HeapMiB: 1024}).Addrs()
		for _, n := range numbers(b, "ZKRECIPES_PEERS_CONTENDERS", "1,10,100,1000,3000") {
			if servers > 1 && n > 1000 && n < 10000 {
				continue // with go-zookeeper's lock, one turn of each contender takes minutes
			}
			workloads := []workload{{"cycle", "cycles/s"}}
			if n >= 100 && n <= 1000 {
				workloads = append(workloads, workload{"drain", "handoffs/s"})
			}
			b.Run(fmt.Sprintf("servers=%d/contenders=%d", servers, n), func(b *testing.B) {
				measured.interleave(b, servers, n, waysOf(b, addrs, n), workloads...)
			})
		}
	}
	fmt.Print(measured.ratios())
}

// workload is what is measured of several ways, and the unit of its rate.
type workload struct{ name, unit string }

// interleave measures the workloads of all ways, in rounds. A round before them warms up.
func (s samples) interleave(b *testing.B, servers, contenders int, ways []way, workloads ...workload) {
	window := time.Duration(numbers(b, "ZKRECIPES_PEERS_WINDOW_MS", "3000")[0]) * time.Millisecond
	for _, w := range ways {
		for _, l := range workloads {
			if run := w.runs[l.name]; run != nil {
				run(b, time.Second)
			}
		}
	}
	for round := range numbers(b, "ZKRECIPES_PEERS_ROUNDS", "6")[0] {
		for i := range ways {
			w := ways[(i+round)%len(ways)]
			for _, l := range workloads {
				run := w.runs[l.name]
				if run == nil {
					continue
				}
				b.Run(fmt.Sprintf("workload=%s/round=%d/lock=%s", l.name, round, w.name), func(b *testing.B) {
					before := int64(0)
					if w.asked != nil {
						before = w.asked(b)
					}
					rate := run(b, window)
					b.ReportMetric(rate, l.unit)
					if w.asked != nil {
						b.ReportMetric(float64(w.asked(b)-before), "asked")
					}
					b.ReportMetric(0, "ns/op")
					s.add(sample{servers, l.name, contenders, w.name}, rate)
				})
			}
		}
	}
}

// numbers reads a list of numbers from the environment.
func numbers(tb testing.TB, env, otherwise string) []int {
	tb.Helper()
	text := os.Getenv(env)
	if text == "" {
		text = otherwise
	}
	var list []int
	for _, field := range strings.Split(text, ",") {
		n, err := strconv.Atoi(field)
		if err != nil || n < 1 {
			tb.Fatalf("%s=%s: %q is not a number of 1 or more", env, text, field)
		}
		list = append(list, n)
	}
	return list
}
