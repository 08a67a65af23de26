package record

import (
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"golang.org/x/perf/benchfmt"

	"github.com/zkrecipes/zkrecipes/bench/load"
	"github.com/zkrecipes/zkrecipes/internal/unit"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// megabyte is what MB means to benchstat.
const megabyte = 1e6

// directed are the units with a better direction, in the order in which they are written.
// unit.TurnsMax has none: a faster lock gives more turns to all contenders.
var directed = []string{
	unit.Time, unit.Handoffs, unit.HandoffP50, unit.HandoffP99, unit.WaitP50, unit.WaitP99,
	unit.Reads, unit.Writes, unit.Syncs, unit.Events, unit.Bytes, unit.Fallbacks, unit.Asked,
	unit.Acquired, unit.Ops, unit.ServiceP50, unit.ServiceP99, unit.LateP99, unit.NoGrant, unit.TurnsMin, unit.TurnsCV,
	unit.Packets, unit.Fsyncs, unit.ServerCPU, unit.HostCPU, unit.OtherCPU, unit.RSS, unit.Session, unit.RSSEach,
}

var higher = []string{unit.Handoffs, unit.Acquired, unit.Ops, unit.TurnsMin}

// Metrics derives the figures of a record. It omits figures that the trial cannot have:
// one contender has no handoffs and no watch events, a drain has no waits. It also omits
// a time of zero: benchstat does not convert zero nanoseconds to seconds, and would put
// them into a table of their own.
func (r Record) Metrics() []benchfmt.Value {
	var m metrics
	r.speed(&m)
	m.percentiles(unit.HandoffP50, unit.HandoffP99, r.Handoff)
	m.percentiles(unit.WaitP50, unit.WaitP99, r.Wait)
	if r.Workload != load.Timeline { // a timeline has no counters
		r.costs(&m)
	}
	r.fairness(&m)
	r.server(&m)
	r.processor(&m)
	if r.Memory.RSS > 0 {
		m.add(unit.RSS, float64(r.Memory.RSS)/megabyte)
	}
	if r.Memory.Session > 0 {
		m.add(unit.Session, float64(r.Memory.Session)/megabyte)
	}
	if r.Memory.RSS > 0 && r.Contenders > 0 {
		m.add(unit.RSSEach, float64(r.Memory.RSS)/megabyte/float64(r.Contenders*max(1, r.Lines)))
	}
	return m
}

// speed adds the rates and the times of operations. An open load has no time per operation,
// because its schedule decides its speed, and a timeline has none, because its faults do.
func (r Record) speed(m *metrics) {
	ops := float64(r.Operations)
	if r.Workload == load.Timeline {
		m.add(unit.Acquired, ops/r.Elapsed.Seconds())
		m.time(unit.NoGrant, float64(r.longest()))
		return
	}
	if r.Workload == load.Open {
		m.add(unit.Acquired, ops/r.Elapsed.Seconds())
		m.percentiles(unit.ServiceP50, unit.ServiceP99, r.Service)
		m.percentiles("", unit.LateP99, r.Late)
		return
	}
	m.time(unit.Time, float64(r.Elapsed)/ops)
	if r.Workload.Own() {
		m.add(unit.Ops, ops/r.Elapsed.Seconds())
		m.percentiles(unit.ServiceP50, unit.ServiceP99, r.Service)
		return
	}
	if r.Contenders > 1 && r.Workload != load.Failover {
		m.add(unit.Handoffs, ops/r.Elapsed.Seconds())
	}
}

func (r Record) longest() (d time.Duration) {
	if r.Timeline != nil {
		for _, f := range r.Timeline.Faults {
			d = max(d, f.Gap.Longest)
		}
	}
	return d
}

func (r Record) costs(m *metrics) {
	ops := float64(r.Operations)
	m.add(unit.Reads, float64(r.Counters.Reads)/ops)
	m.add(unit.Writes, float64(r.Counters.Writes)/ops)
	if n := r.Counters.ByKind["sync"]; n > 0 {
		m.add(unit.Syncs, float64(n)/ops)
	}
	if n := r.Counters.Asked; n > 0 {
		m.add(unit.Asked, float64(n)/ops)
	}
	if r.Contenders > 1 {
		m.add(unit.Events, float64(r.Counters.WatchEvents)/ops)
	}
	m.add(unit.Bytes, float64(r.Counters.ResponseBytes)/ops)
	if r.Strategy == recipes.Handoff && r.Contenders > 1 {
		m.add(unit.Fallbacks, float64(r.Counters.Fallbacks)/ops)
	}
}

func (r Record) fairness(m *metrics) {
	if len(r.Turns) < 2 {
		return
	}
	var sum, squares float64
	for _, n := range r.Turns {
		sum += float64(n)
	}
	mean := sum / float64(len(r.Turns))
	for _, n := range r.Turns {
		squares += (float64(n) - mean) * (float64(n) - mean)
	}
	cv := 0.0 // coefficient of variation: standard deviation over mean
	if mean > 0 {
		cv = math.Sqrt(squares/float64(len(r.Turns))) / mean
	}
	m.add(unit.TurnsMin, float64(slices.Min(r.Turns)))
	m.add(unit.TurnsMax, float64(slices.Max(r.Turns)))
	m.add(unit.TurnsCV, cv)
}

func (r Record) server(m *metrics) {
	for _, figure := range []struct {
		name, unit string
		scale      float64
	}{
		{"packets_received", unit.Packets, 1},
		{"cnt_fsynctime", unit.Fsyncs, 1},
		{"process_cpu_seconds", unit.ServerCPU, 1e9},
	} {
		if v, ok := r.Server[figure.name]; ok {
			m.add(figure.unit, v*figure.scale/float64(r.Operations))
		}
	}
}

// processor adds the processor time of an operation by process, if that of the other
// processes is available. A library call has no other process.
func (r Record) processor(m *metrics) {
	if r.Client.Other == nil {
		return
	}
	m.time(unit.HostCPU, float64(r.Client.CPU)/float64(r.Operations))
	m.time(unit.OtherCPU, float64(*r.Client.Other)/float64(r.Operations))
}

// Metric returns the value of a unit, if the record has it.
func (r Record) Metric(unit string) (float64, bool) {
	for _, m := range r.Metrics() {
		if m.Unit == unit {
			return m.Value, true
		}
	}
	return 0, false
}

type metrics []benchfmt.Value

// add adds a figure, rounded to six significant digits. It drops NaN and infinities.
func (m *metrics) add(unit string, value float64) {
	if math.IsNaN(value) || math.IsInf(value, 0) {
		return
	}
	if rounded, err := strconv.ParseFloat(strconv.FormatFloat(value, 'g', 6, 64), 64); err == nil {
		value = rounded
	}
	*m = append(*m, benchfmt.Value{Value: value, Unit: unit})
}

// time adds a time in whole nanoseconds, unless that is zero.
func (m *metrics) time(unit string, ns float64) {
	if ns = math.Round(ns); ns > 0 && !math.IsInf(ns, 0) {
		*m = append(*m, benchfmt.Value{Value: ns, Unit: unit})
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
