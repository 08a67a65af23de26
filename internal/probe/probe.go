// Package probe observes the load generator while it measures. It reads how much processor
// time this process takes, how long its goroutines wait to run, and how long the garbage
// collector stops them.
//
//  1. [Start] before the measured part.
//  2. [Probe.Stop] after it.
package probe

import (
	"math"
	"runtime/metrics"
	"time"
)

// Names of the runtime's figures; see package runtime/metrics.
const (
	schedLatencies = "/sched/latencies:seconds"
	gcPauses       = "/sched/pauses/total/gc:seconds"
	allocated      = "/gc/heap/allocs:bytes"
)

// Probe holds what the process had used when Start was called.
type Probe struct {
	start  time.Time
	cpu    time.Duration
	sched  []uint64
	pauses []uint64
	allocs uint64
}

// Start reads what the process has used so far.
func Start() Probe {
	samples := read()
	return Probe{
		start:  time.Now(),
		cpu:    cpuTime(),
		sched:  samples[0].Value.Float64Histogram().Counts,
		pauses: samples[1].Value.Float64Histogram().Counts,
		allocs: samples[2].Value.Uint64(),
	}
}

// Usage is what the process used between Start and Stop.
type Usage struct {
	Took, CPU time.Duration // CPU is user and system time; 0 where it is not available
	GC        time.Duration // pauses of the garbage collector, summed up
	LongGC    time.Duration // the longest of them: the upper end of the runtime's bucket
	SchedP99  time.Duration // 99th percentile of how long runnable goroutines waited
	Allocs    uint64        // bytes
}

// Stop returns what the process used since Start.
func (p Probe) Stop() Usage {
	samples := read()
	sched, pauses := samples[0].Value.Float64Histogram(), samples[1].Value.Float64Histogram()
	total, longest := pausesSince(pauses, p.pauses)
	return Usage{
		Took: time.Since(p.start),
		CPU:  cpuTime() - p.cpu, GC: total, LongGC: longest,
		SchedP99: percentileSince(sched, p.sched, 0.99),
		Allocs:   samples[2].Value.Uint64() - p.allocs,
	}
}

// read reads the figures. Every call has histograms of its own.
func read() []metrics.Sample {
	samples := []metrics.Sample{{Name: schedLatencies}, {Name: gcPauses}, {Name: allocated}}
	metrics.Read(samples)
	return samples
}

// percentileSince returns the percentile of the samples that h has gained since before. It is
// the upper end of a bucket, because the runtime keeps only buckets.
func percentileSince(h *metrics.Float64Histogram, before []uint64, percentile float64) time.Duration {
	var total uint64
	for i, n := range h.Counts {
		total += n - before[i]
	}
	wanted := uint64(math.Ceil(percentile * float64(total)))
	var seen uint64
	for i, n := range h.Counts {
		if seen += n - before[i]; seen >= wanted && seen > 0 {
			return upper(h, i)
		}
	}
	return 0
}

// pausesSince returns the sum of the pauses since before, each taken as the middle of its
// bucket, and the upper end of the longest one's bucket.
func pausesSince(h *metrics.Float64Histogram, before []uint64) (total, longest time.Duration) {
	for i, n := range h.Counts {
		if n -= before[i]; n == 0 {
			continue
		}
		longest = upper(h, i)
		total += time.Duration(n) * (lower(h, i) + longest) / 2
	}
	return total, longest
}

func upper(h *metrics.Float64Histogram, i int) time.Duration {
	if bound := h.Buckets[i+1]; !math.IsInf(bound, 0) {
		return seconds(bound)
	}
	return lower(h, i)
}

func lower(h *metrics.Float64Histogram, i int) time.Duration {
	if bound := h.Buckets[i]; !math.IsInf(bound, 0) {
		return seconds(bound)
	}
	return 0
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
