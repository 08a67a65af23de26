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
	rounds, window := numbers(b, "ZKRECIPES_PEERS_ROUNDS", "6")[0], numbers(b, "ZKRECIPES_PEERS_WINDOW_MS", "3000")[0]
	measured := samples{}
	for _, servers := range numbers(b, "ZKRECIPES_PEERS_SERVERS", "1,3") {
		addrs := ensembletest.Start(b, ensemble.Config{Servers: servers, HeapMiB: 1024}).Addrs()
		for _, n := range numbers(b, "ZKRECIPES_PEERS_CONTENDERS", "1,10,100,1000,3000") {
			if servers > 1 && n > 1000 && n < 10000 {
				continue // with go-zookeeper's lock, one turn of each contender takes minutes
			}
			b.Run(fmt.Sprintf("servers=%d/contenders=%d", servers, n), func(b *testing.B) {
				ways := waysOf(b, addrs, n)
				for _, w := range ways {
					if w.cycle != nil {
						w.cycle(b, time.Second)
					}
				}
				for round := range rounds {
					for i := range ways {
						w := ways[(i+round)%len(ways)]
						measure := func(workload, unit string, run func(testing.TB) float64) {
							b.Run(fmt.Sprintf("workload=%s/round=%d/lock=%s", workload, round, w.name), func(b *testing.B) {
								before := int64(0)
								if w.asked != nil {
									before = w.asked(b)
								}
								rate := run(b)
								b.ReportMetric(rate, unit)
								if w.asked != nil {
									b.ReportMetric(float64(w.asked(b)-before), "asked")
								}
								b.ReportMetric(0, "ns/op")
								measured.add(sample{servers, workload, n, w.name}, rate)
							})
						}
						if w.cycle != nil {
							measure("cycle", "cycles/s", func(tb testing.TB) float64 { return w.cycle(tb, time.Duration(window)*time.Millisecond) })
						}
						if w.drain != nil && n >= 100 && n <= 1000 {
							measure("drain", "handoffs/s", w.drain)
						}
					}
				}
			})
		}
	}
	fmt.Print(measured.ratios())
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
