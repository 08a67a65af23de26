// Package validity says whether a trial measured the servers, or the load generator itself.
package validity

import (
	"fmt"
	"runtime"
	"time"

	"github.com/zkrecipes/zkrecipes/bench/record"
)

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
	// Late is how far behind schedule an open load starts its acquisitions, at the 99th percentile.
	// It counts only if it is also more than LateShare of the median wait.
	Late      time.Duration
	LateShare float64
}

// For returns the limits for a generator. If the server is inside its process, the server's share of the
// processor time, and of the waits for a processor, is unknown. So neither has a limit then.
func For(serverInside bool) Limits {
	l := Limits{
		CPU: 0.9, Sched: 2 * time.Millisecond, SchedShare: 0.5, GC: 0.05,
		Late: 5 * time.Millisecond, LateShare: 0.1,
	}
	if serverInside {
		l.CPU, l.Sched = 0, 0
	}
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
