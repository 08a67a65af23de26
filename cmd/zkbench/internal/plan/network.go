package plan

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/zkrecipes/zkrecipes/bench/record"
	"github.com/zkrecipes/zkrecipes/internal/unit"
	"github.com/zkrecipes/zkrecipes/recipes"
)

type network struct {
	base  time.Duration // the smallest delay of the records
	trips float64
	off   float64 // the error of trips, as a share
}

// offMeasured is the error of a number of round trips that was measured at two delays or more,
// offAssumed that of a number that was assumed from the strategy. Both are shares.
const (
	offMeasured = 0.1
	offAssumed  = 0.35
)

// RoundTrips is how many round trips of a handoff follow each other. The release on its way to
// the server and the event on its way to the successor are half a round trip each. By handoff
// the successor sends nothing before its grant. By predecessor and by herd it lists the line,
// and then sends a second read.
func RoundTrips(s recipes.Strategy) int {
	if s == recipes.Handoff {
		return 1
	}
	return 3
}

// assumedTrips returns the round trips for records at one delay only. By handoff, a grant sends
// the leader a sync if its proof is too old. In older versions each grant did. The counters of
// the records show whether most grants did.
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
	n := network{base: math.MaxInt64, trips: assumedTrips(s, byLevel), off: offAssumed}
	for _, records := range byLevel {
		for _, r := range records {
			n.base = min(n.base, r.Delay)
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

// slopes returns the growth of the median handoff of one level at each delay, in multiples
// of the delay.
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

// Trips describes in words how many round trips a handoff takes, and whether that was measured.
func (m *Model) Trips() string {
	known := "assumed from the strategy; records of another -delay would measure it"
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

// OnServers estimates a handoff's mean time on n servers from measured numbers of servers.
// Between two of them it interpolates. Beyond the largest, each additional server costs the
// leader one more proposal, and nothing else if the others of the quorum are faster. So the
// time is assumed to grow half as fast as between the last two, and the interval reaches from
// no growth to the growth between those two.
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

// Tolerated is how many of n servers may fail so that the others are still a quorum.
func Tolerated(n int) int { return (n - 1) / 2 }

// Moved is how often sessions reconnect when all servers are restarted one after the other.
// Sessions are spread evenly at first. The sessions of a stopped server move to the others,
// and stay there, so each restart moves s/(s-1) times as many as the one before. With one
// server each session reconnects once.
func Moved(sessions, servers int) int {
	if servers < 2 {
		return sessions
	}
	s := float64(servers)
	return int(math.Round(float64(sessions) * (s - 1) / s * (math.Pow(s/(s-1), s) - 1)))
}
