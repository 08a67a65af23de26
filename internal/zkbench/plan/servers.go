package plan

import (
	"cmp"
	"errors"
	"math"
	"slices"
)

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
