package record

import (
	"math"
	"slices"
	"strconv"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/zkrecipes/zkrecipes/bench/load"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// Metric is a figure with its unit.
type Metric struct {
	Unit  string
	Value float64
}

// Units of the metrics, in the order in which they are written. An op is a
// handoff; of a contender that is alone it is a turn (acquire and release).
const (
	UnitTime       = "ns/op"
	UnitHandoffs   = "handoffs/s"
	UnitHandoffP50 = "p50-handoff-ns" // see package load for handoff and wait
	UnitHandoffP99 = "p99-handoff-ns"
	UnitWaitP50    = "p50-wait-ns"
	UnitWaitP99    = "p99-wait-ns"
	UnitReads      = "reads/op"
	UnitWrites     = "writes/op"
	UnitEvents     = "watch-events/op"
	UnitBytes      = "response-bytes/op"
	UnitFallbacks  = "fallbacks/op"   // of recipes.Handoff: listings after all
	UnitAcquired   = "acquisitions/s" // of an open load
	UnitOps        = "ops/s"          // of workloads of rounds
	UnitServiceP50 = "p50-service-ns" // of an open load, and of rounds
	UnitServiceP99 = "p99-service-ns"
	UnitLateP99    = "p99-late-ns" // behind schedule
	UnitTurnsMin   = "min-turns"   // of the contender that had fewest
	UnitTurnsMax   = "max-turns"
	UnitTurnsCV    = "cv-turns" // standard deviation over mean: 0 is fair
	UnitPackets    = "server-packets/op"
	UnitFsyncs     = "server-fsyncs/op"
	UnitServerCPU  = "server-cpu-ns/op"
	UnitRSS        = "MB-rss"          // of the whole process, all enrolled
	UnitSession    = "MB-heap/session" // and by how much each session grew it
	UnitRSSEach    = "MB-rss/session"  // MB-rss over the number of sessions
)

// megabyte is what benchstat takes MB for.
const megabyte = 1e6

// better says of units whether "higher" or "lower" is better. UnitTurnsMax is neither:
// a lock that has become faster gives more turns to everybody.
var better = []struct{ unit, better string }{
	{UnitTime, "lower"},
	{UnitHandoffs, "higher"},
	{UnitHandoffP50, "lower"},
	{UnitHandoffP99, "lower"},
	{UnitWaitP50, "lower"},
	{UnitWaitP99, "lower"},
	{UnitReads, "lower"},
	{UnitWrites, "lower"},
	{UnitEvents, "lower"},
	{UnitBytes, "lower"},
	{UnitFallbacks, "lower"},
	{UnitAcquired, "higher"},
	{UnitOps, "higher"},
	{UnitServiceP50, "lower"},
	{UnitServiceP99, "lower"},
	{UnitLateP99, "lower"},
	{UnitTurnsMin, "higher"},
	{UnitTurnsCV, "lower"},
	{UnitPackets, "lower"},
	{UnitFsyncs, "lower"},
	{UnitServerCPU, "lower"},
	{UnitRSS, "lower"},
	{UnitSession, "lower"},
	{UnitRSSEach, "lower"},
}

// Metrics derives the figures of a record. A figure that the trial cannot have
// is left out: one contender has no handoffs and no watch events, a drain has no
// waits. So is a time of zero: benchstat would put it into a table of its own,
// because zero nanoseconds do not become seconds.
func (r Record) Metrics() []Metric {
	var m metrics
	r.speed(&m)
	m.percentiles(UnitHandoffP50, UnitHandoffP99, r.Handoff)
	m.percentiles(UnitWaitP50, UnitWaitP99, r.Wait)
	r.costs(&m)
	r.fairness(&m)
	r.server(&m)
	if r.Memory.RSS > 0 {
		m.add(UnitRSS, float64(r.Memory.RSS)/megabyte)
	}
	if r.Memory.Session > 0 {
		m.add(UnitSession, float64(r.Memory.Session)/megabyte)
	}
	if r.Memory.RSS > 0 && r.Contenders > 0 {
		m.add(UnitRSSEach, float64(r.Memory.RSS)/megabyte/float64(r.Contenders*max(1, r.Lines)))
	}
	return m
}

// speed adds how fast it went. An open load goes as fast as it is told to, so
// its time per operation would be the schedule's.
func (r Record) speed(m *metrics) {
	ops := float64(r.Operations)
	if r.Workload == load.Open {
		m.add(UnitAcquired, ops/r.Elapsed.Seconds())
		m.percentiles(UnitServiceP50, UnitServiceP99, r.Service)
		m.percentiles("", UnitLateP99, r.Late)
		return
	}
	m.time(UnitTime, float64(r.Elapsed)/ops)
	if r.Workload.Own() {
		m.add(UnitOps, ops/r.Elapsed.Seconds())
		m.percentiles(UnitServiceP50, UnitServiceP99, r.Service)
		return
	}
	if r.Contenders > 1 && r.Workload != load.Failover {
		m.add(UnitHandoffs, ops/r.Elapsed.Seconds())
	}
}

// costs adds what an operation cost.
func (r Record) costs(m *metrics) {
	ops := float64(r.Operations)
	m.add(UnitReads, float64(r.Counters.Reads)/ops)
	m.add(UnitWrites, float64(r.Counters.Writes)/ops)
	if r.Contenders > 1 {
		m.add(UnitEvents, float64(r.Counters.WatchEvents)/ops)
	}
	m.add(UnitBytes, float64(r.Counters.ResponseBytes)/ops)
	if r.Strategy == recipes.Handoff && r.Contenders > 1 {
		m.add(UnitFallbacks, float64(r.Counters.Fallbacks)/ops)
	}
}

// fairness adds how evenly the turns fell.
func (r Record) fairness(m *metrics) {
	if len(r.Turns) < 2 {
		return
	}
	f := FairnessOf(r.Turns)
	m.add(UnitTurnsMin, float64(f.Min))
	m.add(UnitTurnsMax, float64(f.Max))
	m.add(UnitTurnsCV, f.CV)
}

// server adds what an operation cost the servers, as far as they tell.
func (r Record) server(m *metrics) {
	for _, figure := range []struct {
		name, unit string
		scale      float64
	}{
		{"packets_received", UnitPackets, 1},
		{"cnt_fsynctime", UnitFsyncs, 1},
		{"process_cpu_seconds", UnitServerCPU, 1e9},
	} {
		if v, ok := r.Server[figure.name]; ok {
			m.add(figure.unit, v*figure.scale/float64(r.Operations))
		}
	}
}

// Fairness is how evenly turns fell on contenders.
type Fairness struct {
	Min, Max int64
	CV       float64 // coefficient of variation: standard deviation over mean
}

// FairnessOf returns the fairness of turns, which has at least one value.
func FairnessOf(turns []int64) Fairness {
	f := Fairness{Min: slices.Min(turns), Max: slices.Max(turns)}
	var sum, squares float64
	for _, n := range turns {
		sum += float64(n)
	}
	mean := sum / float64(len(turns))
	for _, n := range turns {
		squares += (float64(n) - mean) * (float64(n) - mean)
	}
	if mean > 0 {
		f.CV = math.Sqrt(squares/float64(len(turns))) / mean
	}
	return f
}

// Metric returns the value of a unit, if the record has it.
func (r Record) Metric(unit string) (float64, bool) { return metric(r.Metrics(), unit) }

// metric returns the value of a unit.
func metric(all []Metric, unit string) (float64, bool) {
	for _, m := range all {
		if m.Unit == unit {
			return m.Value, true
		}
	}
	return 0, false
}

type metrics []Metric

// add adds a figure, rounded to what can mean something.
func (m *metrics) add(unit string, value float64) {
	if math.IsNaN(value) || math.IsInf(value, 0) {
		return
	}
	if rounded, err := strconv.ParseFloat(strconv.FormatFloat(value, 'g', 6, 64), 64); err == nil {
		value = rounded
	}
	*m = append(*m, Metric{unit, value})
}

// time adds a time in whole nanoseconds, unless it is none.
func (m *metrics) time(unit string, ns float64) {
	if ns = math.Round(ns); ns > 0 && !math.IsInf(ns, 0) {
		*m = append(*m, Metric{unit, ns})
	}
}

func (m *metrics) percentiles(p50, p99 string, h *hdrhistogram.Histogram) {
	if h == nil || h.TotalCount() == 0 {
		return
	}
	if p50 != "" {
		m.time(p50, float64(h.ValueAtPercentile(50)))
	}
	m.time(p99, float64(h.ValueAtPercentile(99)))
}
