package record

import (
	"math"
	"strconv"

	"github.com/HdrHistogram/hdrhistogram-go"
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
	UnitRSS        = "MB-rss"          // of the whole process, all enrolled
	UnitSession    = "MB-heap/session" // and by how much each session grew it
)

// megabyte is what benchstat takes MB for.
const megabyte = 1e6

// better says of every unit whether "higher" or "lower" is better.
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
	{UnitRSS, "lower"},
	{UnitSession, "lower"},
}

// Metrics derives the figures of a record. A figure that the trial cannot have
// is left out: one contender has no handoffs and no watch events, a drain has no
// waits. So is a time of zero: benchstat would put it into a table of its own,
// because zero nanoseconds do not become seconds.
func (r Record) Metrics() []Metric {
	var m metrics
	ops := float64(r.Operations)
	m.time(UnitTime, float64(r.Elapsed)/ops)
	if r.Contenders > 1 {
		m.add(UnitHandoffs, ops/r.Elapsed.Seconds())
	}
	m.percentiles(UnitHandoffP50, UnitHandoffP99, r.Handoff)
	m.percentiles(UnitWaitP50, UnitWaitP99, r.Wait)
	m.add(UnitReads, float64(r.Counters.Reads)/ops)
	m.add(UnitWrites, float64(r.Counters.Writes)/ops)
	if r.Contenders > 1 {
		m.add(UnitEvents, float64(r.Counters.WatchEvents)/ops)
	}
	m.add(UnitBytes, float64(r.Counters.ResponseBytes)/ops)
	if r.Memory.RSS > 0 {
		m.add(UnitRSS, float64(r.Memory.RSS)/megabyte)
	}
	if r.Memory.Session > 0 {
		m.add(UnitSession, float64(r.Memory.Session)/megabyte)
	}
	return m
}

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
	m.time(p50, float64(h.ValueAtPercentile(50)))
	m.time(p99, float64(h.ValueAtPercentile(99)))
}
