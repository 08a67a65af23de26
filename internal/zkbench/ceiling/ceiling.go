// Package ceiling tells which trials would take too long.
package ceiling

import (
	"math"
	"slices"
	"time"

	"github.com/zkrecipes/zkrecipes/bench/load"
	"github.com/zkrecipes/zkrecipes/bench/record"
)

// Ceiling tells which trials would take too long, from those that were made with fewer
// contenders. What a strategy costs in a line of a thousand is known after lines of a
// hundred. Only the measured part counts.
type Ceiling struct {
	// Limit is how long a trial may take; 0 is no limit.
	Limit time.Duration

	took map[string]map[int]time.Duration // the fastest, by combination and contenders
}

// Add takes what a trial has taken into account.
func (c *Ceiling) Add(r record.Record) {
	if c.took == nil {
		c.took = map[string]map[int]time.Duration{}
	}
	key := combinationOf(r)
	if c.took[key] == nil {
		c.took[key] = map[int]time.Duration{}
	}
	if fastest, ok := c.took[key][r.Contenders]; !ok || r.Elapsed < fastest {
		c.took[key][r.Contenders] = r.Elapsed
	}
}

func combinationOf(r record.Record) string {
	r.Contenders = 0
	return r.Name()
}

// TooLong reports whether a trial would take longer than the limit, and how long it is
// expected to take. That is the time of the fastest such trial, if there was one.
// Otherwise it follows from the two largest lines below it, by the power law through
// them, of a power from one to three. The herd is cubic: as many handoffs as
// contenders, each with as many listings, each as long. What is measured for a given
// time need not grow, nor need a failover: their power is from zero. What is not known
// is not too long.
func (c *Ceiling) TooLong(r record.Record) (expected time.Duration, yes bool) {
	took := c.took[combinationOf(r)]
	expected, ok := took[r.Contenders]
	if !ok {
		expected = extrapolate(took, r.Contenders, leastPower(r.Workload))
	}
	return expected, c.Limit > 0 && expected > c.Limit
}

// leastPower is the power of the number of contenders that the time of a trial grows
// with at least.
func leastPower(w load.Workload) float64 {
	switch w {
	case load.Cycle, load.Open, load.Many, load.Failover:
		return 0
	}
	return 1
}

func extrapolate(took map[int]time.Duration, n int, least float64) time.Duration {
	var below []int
	for level := range took {
		if level > 1 && level < n { // a contender alone is another experiment
			below = append(below, level)
		}
	}
	if len(below) == 0 {
		return 0
	}
	slices.Sort(below)
	last := below[len(below)-1]
	power := least
	if len(below) > 1 {
		before := below[len(below)-2]
		power = math.Log(float64(took[last])/float64(took[before])) / math.Log(float64(last)/float64(before))
	}
	if math.IsNaN(power) {
		power = least
	}
	power = min(max(power, least), 3)
	return time.Duration(float64(took[last]) * math.Pow(float64(n)/float64(last), power))
}
