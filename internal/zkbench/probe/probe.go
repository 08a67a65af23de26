// Package probe observes the load generator while it measures. It reads how much processor
// time this process takes, how long its goroutines wait to run, and how long the garbage
// collector stops them.
//
//  1. [Start] before the measured part.
//  2. [Probe.Stop] after it.
//  3. [Limits.Check] returns the reasons if the generator itself was the limit.
package probe

import (
	"fmt"
	"math"
	"runtime"
	"runtime/metrics"
	"time"

	"github.com/zkrecipes/zkrecipes/bench/record"
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

// Stop returns what the process used since Start.
func (p Probe) Stop() record.Client {
	samples := read()
	sched, pauses := samples[0].Value.Float64Histogram(), samples[1].Value.Float64Histogram()
	total, longest := pausesSince(pauses, p.pauses)
	return record.Client{
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

// Limits are the figures beyond which a trial measures the load generator rather than the
// servers. A limit of 0 is not checked.
type Limits struct {
	// CPU is the share of all processors that this process takes, from 0 to 1.
	CPU float64
	// Sched is how long a runnable goroutine waits, at the 99th percentile. It counts only
	// if it is also more than SchedShare of the median handoff, or of the median wait if
	// there are no handoffs.
	Sched      time.Duration
	SchedShare float64
	// GC is the share of the measured time for which the garbage collector stops
	// all goroutines.
	GC float64
	// Late is how far behind schedule an open load starts, at the 99th percentile. It counts
	// only if it is also more than LateShare of the median wait.
	Late      time.Duration
	LateShare float64
}

// DefaultLimits are the limits for a generator without the server in its process.
func DefaultLimits() Limits {
	return Limits{
		CPU: 0.9, Sched: 2 * time.Millisecond, SchedShare: 0.5, GC: 0.05,
		Late: 5 * time.Millisecond, LateShare: 0.1,
	}
}

// WithServer are the limits for a generator with the server in its own process. The server's
// share of the processor time, and of the waits for a processor, is unknown. So neither has a
// limit.
func WithServer() Limits {
	l := DefaultLimits()
	l.CPU, l.Sched = 0, 0
	return l
}

// shortGC is the sum of pauses up to which a trial is valid, whatever its share. In a trial of
// milliseconds a single pause is a large share, but the next trial may have none.
const shortGC = 10 * time.Millisecond

// Check returns the reasons why the record is invalid, each a sentence with the figure and
// its limit.
func (l Limits) Check(r record.Record) (reasons []string) {
	say := func(format string, args ...any) { reasons = append(reasons, fmt.Sprintf(format, args...)) }
	took := r.Client.Took
	if took == 0 {
		took = r.Elapsed
	}
	if took > 0 {
		if share := r.Client.CPU.Seconds() / (took.Seconds() * float64(runtime.GOMAXPROCS(0))); l.CPU > 0 && share > l.CPU {
			say("the load generator took %.0f%% of the processors (limit %.0f%%)", 100*share, 100*l.CPU)
		}
		if share := r.Client.GC.Seconds() / took.Seconds(); l.GC > 0 && share > l.GC && r.Client.GC > shortGC {
			say("garbage collection stopped the load generator for %.1f%% of the time (limit %.0f%%)", 100*share, 100*l.GC)
		}
	}
	if l.Sched > 0 && r.Client.SchedP99 > l.Sched && share(r.Client.SchedP99, typical(r)) > l.SchedShare {
		say("goroutines of the load generator waited %v to run at the 99th percentile (limit %v)", r.Client.SchedP99.Round(time.Microsecond), l.Sched)
	}
	if r.Late != nil && r.Late.TotalCount() > 0 && l.Late > 0 {
		late := time.Duration(r.Late.ValueAtPercentile(99))
		if late > l.Late && share(late, time.Duration(r.Wait.ValueAtPercentile(50))) > l.LateShare {
			say("acquisitions started %v behind schedule at the 99th percentile (limit %v)", late.Round(time.Microsecond), l.Late)
		}
	}
	return reasons
}

func typical(r record.Record) time.Duration {
	if r.Handoff != nil && r.Handoff.TotalCount() > 0 {
		return time.Duration(r.Handoff.ValueAtPercentile(50))
	}
	if r.Wait != nil && r.Wait.TotalCount() > 0 {
		return time.Duration(r.Wait.ValueAtPercentile(50))
	}
	return 0
}

func share(part, whole time.Duration) float64 {
	if whole <= 0 {
		return 1
	}
	return float64(part) / float64(whole)
}
