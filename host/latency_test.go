package host_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/host"
	"github.com/zkrecipes/zkrecipes/internal/testing/ensembletest"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// BenchmarkCall measures a call that the plugin answers without a request to the server. PROTOCOL.md
// has the numbers.
func BenchmarkCall(b *testing.B) {
	forEachTransport(b, func(b *testing.B, s recipes.Client) {
		var l latencies
		for b.Loop() {
			l.add(stats(b, s))
		}
		l.report(b)
	})
}

// BenchmarkCallAfterIdle pauses before each call: a process that has slept for a while takes
// longer to wake up.
func BenchmarkCallAfterIdle(b *testing.B) {
	forEachTransport(b, func(b *testing.B, s recipes.Client) {
		var l latencies
		for b.Loop() {
			time.Sleep(300 * time.Microsecond)
			l.add(stats(b, s))
		}
		l.report(b)
	})
}

// BenchmarkCalls has 20 callers.
func BenchmarkCalls(b *testing.B) {
	forEachTransport(b, func(b *testing.B, s recipes.Client) {
		b.SetParallelism(20 / runtime.GOMAXPROCS(0))
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				stats(b, s)
			}
		})
	})
}

// stats makes a call and returns its start time.
func stats(b *testing.B, s recipes.Session) time.Time {
	start := time.Now()
	if _, err := s.Stats(b.Context()); err != nil {
		b.Error(err)
	}
	return start
}

func acquireAndRelease(b *testing.B, s recipes.Client) {
	lock := must.Get(s.Lock("/l", recipes.LockConfig{}))(b)
	var l latencies
	for b.Loop() {
		start := time.Now()
		h := must.Get(lock.Acquire(b.Context()))(b)
		must.Do(b, h.Release(b.Context()))
		l.add(start)
	}
	l.report(b)
}

// latencies are the measurements of one benchmark.
type latencies []time.Duration

func (l *latencies) add(start time.Time) { *l = append(*l, time.Since(start)) }

// report adds the median and the 99th percentile to the benchmark's result.
func (l latencies) report(b *testing.B) {
	slices.Sort(l)
	b.ReportMetric(float64(l[len(l)/2]), "p50-ns")
	b.ReportMetric(float64(l[len(l)*99/100]), "p99-ns")
}

func forEachTransport(b *testing.B, run func(*testing.B, recipes.Client)) {
	for _, transport := range []struct {
		name   string
		plugin func(*testing.B) *host.Plugin
	}{
		{"via=memory", func(b *testing.B) *host.Plugin { return inProcess(b) }},
		{"via=socket", unencrypted},
		{"via=process", func(b *testing.B) *host.Plugin { return launch(b, config(b, "plugin")) }}, // socket and TLS
		{"via=process,unary", func(b *testing.B) *host.Plugin { return launch(b, config(b, "unary plugin")) }},
	} {
		b.Run(transport.name, func(b *testing.B) {
			p := transport.plugin(b)
			s := open(b, p, time.Hour)
			measured(b, p.PID(), func() { run(b, s) })
		})
	}
}

// measured reports the processor time of a benchmark, of this process and the process pid. 0
// means no other process.
func measured(b *testing.B, pid int, run func()) {
	before := processorTime(pid)
	run()
	b.ReportMetric(float64(processorTime(pid)-before)/float64(b.N), "cpu-ns/op")
}

// BenchmarkOverALibrary measures the cost of the plugin over that of the library: a lock
// acquired and released on a real server, through a plugin and by the library. The difference in
// cpu-ns/op is the cost of the plugin.
func BenchmarkOverALibrary(b *testing.B) {
	server := ensembletest.Start(b, ensembletest.Quick(1))
	for _, via := range []string{"library", "plugin"} {
		b.Run("via="+via, func(b *testing.B) {
			open, pid := recipes.Opener(zookeeper.Open), 0
			if via == "plugin" {
				p := launch(b, config(b, "real plugin"))
				open, pid = p.Open, p.PID()
			}
			s := must.Get(open(ctx(b), recipes.SessionConfig{Servers: server.Addrs()}))(b)
			b.Cleanup(func() { _ = s.Close(context.Background()) })
			measured(b, pid, func() { acquireAndRelease(b, s) })
		})
	}
}

// BenchmarkTake takes elements from a queue on a real server, one after the other and in batches, by
// the library and through a plugin. An op is an element.
func BenchmarkTake(b *testing.B) {
	server := ensembletest.Start(b, ensembletest.Quick(1))
	for _, most := range []int{1, 10, 100} {
		for _, via := range []string{"library", "plugin"} {
			b.Run(fmt.Sprintf("batch=%d/via=%s", most, via), func(b *testing.B) {
				open := recipes.Opener(zookeeper.Open)
				if via == "plugin" {
					open = launch(b, config(b, "real plugin")).Open
				}
				s := must.Get(open(ctx(b), recipes.SessionConfig{Servers: server.Addrs()}))(b)
				b.Cleanup(func() { _ = s.Close(context.Background()) })
				q := must.Get(s.Queue(fmt.Sprintf("/q-%d-%s-%d", most, via, b.N), recipes.QueueConfig{}))(b)
				for range b.N/1000 + 1 {
					must.Get(q.PutMany(b.Context(), make([][]byte, 1000)...))(b)
				}
				must.Get(q.Take(b.Context()))(b) // lists the queue
				b.ResetTimer()
				for taken := 0; taken < b.N; {
					elements := must.Get(q.TakeMany(b.Context(), min(most, b.N-taken)))(b)
					taken += len(elements)
				}
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "taken/s")
			})
		}
	}
}
