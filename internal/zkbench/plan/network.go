package plan

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/zkrecipes/zkrecipes/bench/record"
	"github.com/zkrecipes/zkrecipes/internal/zkbench/unit"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// network is what a round-trip time between sessions and servers adds to a handoff: so
// many round trips, one after the other.
type network struct {
	base  time.Duration // the least delay of the records
	trips float64
	off   float64 // by which share trips may be off
}

// How far trips may be off: measured at two delays or more, and known only from how the
// strategy works.
const (
	offMeasured = 0.1
	offAssumed  = 0.35
)

// RoundTrips is how many round trips a handoff takes one after the other. Half of one
// brings the release to the server, and half of one the event to the next in line.
// Handoff sends nothing more. Predecessor and herd list the line, and then read.
func RoundTrips(s recipes.Strategy) int {
	if s == recipes.Handoff {
		return 1
	}
	return 3
}

// assumedTrips are those of records at one delay only. Handoff asks the leader where the
// sessions had been idle for long, and asked it always in older versions. Records tell.
func assumedTrips(s recipes.Strategy, byLevel map[int][]record.Record) float64 {
	trips := float64(RoundTrips(s))
	if s != recipes.Handoff {
		return trips
	}
	for _, records := range byLevel {
		for _, r := range records {
			if 2*r.Counters.ByKind["sync"] > r.Operations {
				return trips + 1
			}
		}
	}
	return trips
}

// newNetwork learns the round trips from levels that were measured at several delays.
func newNetwork(s recipes.Strategy, byLevel map[int][]record.Record) network {
	n := network{trips: assumedTrips(s, byLevel), off: offAssumed}
	first := true
	for _, records := range byLevel {
		for _, r := range records {
			if first || r.Delay < n.base {
				n.base, first = r.Delay, false
			}
		}
	}
	var trips []float64
	for _, records := range byLevel {
		trips = append(trips, slopes(records, n.base)...)
	}
	if len(trips) > 0 {
		n.trips, n.off = median(trips), offMeasured
	}
	return n
}

// slopes are by how much the median handoff of one level grows with each delay, in
// delays.
func slopes(records []record.Record, base time.Duration) (all []float64) {
	handoffs := map[time.Duration][]float64{}
	for _, r := range records {
		if v, ok := r.Metric(unit.HandoffP50); ok {
			handoffs[r.Delay] = append(handoffs[r.Delay], v)
		}
	}
	if len(handoffs[base]) == 0 {
		return nil
	}
	for delay, values := range handoffs {
		if delay > base {
			all = append(all, max(0, (median(values)-median(handoffs[base]))/float64(delay-base)))
		}
	}
	return all
}

// Trips says how many round trips a handoff takes, and how that is known.
func (m *Model) Trips() string {
	known := "assumed from the strategy; records of another -delay would tell"
	if m.network.off == offMeasured {
		known = "measured"
	}
	return fmt.Sprintf("a handoff has %.1f of them (%s)", m.network.trips, known)
}

// without is a value as it would be at the base delay.
func (n network) without(figure string, v float64, delay time.Duration) float64 {
	added := n.trips * float64(delay-n.base)
	switch {
	case figure == unit.Handoffs:
		return 1e9 / (1e9/v - added)
	case slices.Contains(times, figure):
		return v - added
	}
	return v
}

// with adds what a delay does to an estimate of a time at the base delay.
func (n network) with(e Estimate, delay time.Duration) Estimate {
	added := n.trips * float64(delay-n.base)
	off := math.Abs(added) * n.off
	least := e.Lo / 10 // a handoff is never free
	e.Value = max(least, e.Value+added)
	e.Lo, e.Hi = max(least, e.Lo+added-off), max(e.Value, e.Hi+added+off)
	return e
}
