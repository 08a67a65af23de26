package plan

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/zkrecipes/zkrecipes/bench/record"
	"github.com/zkrecipes/zkrecipes/internal/zkbench/unit"
	"github.com/zkrecipes/zkrecipes/recipes"
)

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

func (n network) with(e Estimate, delay time.Duration) Estimate {
	added := n.trips * float64(delay-n.base)
	off := math.Abs(added) * n.off
	least := e.Lo / 10 // a handoff is never free
	e.Value = max(least, e.Value+added)
	e.Lo, e.Hi = max(least, e.Lo+added-off), max(e.Value, e.Hi+added+off)
	return e
}

// Measured is an estimate of a handoff's mean time on so many servers.
type Measured struct {
	Servers int
	Time    Estimate // in ns
}

// ErrOneNumber is returned where two numbers of servers are needed.
var ErrOneNumber = errors.New("records of two numbers of servers are needed")

// OnServers estimates a handoff's mean time on n servers from those that were measured.
// Between two numbers it is on the line through them. Beyond the largest, each server more
// costs the leader a proposal more. It costs nothing else if the others of the quorum are
// faster. So the estimate is assumed to grow half as fast as between the last two. Its
// interval reaches from no growth to theirs.
func OnServers(measured []Measured, n int) (Estimate, error) {
	slices.SortFunc(measured, func(a, b Measured) int { return cmp.Compare(a.Servers, b.Servers) })
	measured = slices.CompactFunc(measured, func(a, b Measured) bool { return a.Servers == b.Servers })
	for _, m := range measured {
		if m.Servers == n {
			return m.Time, nil
		}
	}
	if len(measured) < 2 {
		return Estimate{}, ErrOneNumber
	}
	i := 1
	for i < len(measured)-1 && measured[i].Servers < n {
		i++
	}
	from, to := measured[i-1], measured[i]
	slope := (to.Time.Value - from.Time.Value) / float64(to.Servers-from.Servers)
	if n < to.Servers {
		more := slope * float64(n-from.Servers)
		least, most := math.Min(from.Time.Lo, to.Time.Lo), math.Max(from.Time.Hi, to.Time.Hi)
		return Estimate{Value: from.Time.Value + more, Lo: least, Hi: most}, nil
	}
	more := slope * float64(n-to.Servers)
	return Estimate{
		Value: to.Time.Value + more/2, Lo: to.Time.Lo + min(0, more), Hi: to.Time.Hi + max(0, more),
	}, nil
}

// Tolerated is how many of n servers may fail while the others are a quorum.
func Tolerated(n int) int { return (n - 1) / 2 }

// Moved is how many sessions reconnect when each of the servers is restarted, one after
// the other. Sessions are spread evenly at first. Those of a server that goes are spread
// over the others, and do not come back by themselves. With one server all reconnect.
func Moved(sessions, servers int) int {
	if servers < 2 {
		return sessions
	}
	on := make([]float64, servers)
	for i := range on {
		on[i] = float64(sessions) / float64(servers)
	}
	var moved float64
	for i := range on {
		leaving := on[i]
		moved += leaving
		on[i] = 0
		for j := range on {
			if j != i {
				on[j] += leaving / float64(servers-1)
			}
		}
	}
	return int(math.Round(moved))
}
