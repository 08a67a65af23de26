package main

import (
	"time"

	"github.com/zkrecipes/zkrecipes/bench"
)

// remaining estimates how long the trials that are left will take. Trials of one
// combination take alike, and those of different ones do not: a line of a
// thousand takes a thousand times as long as one of one.
type remaining struct {
	left  map[combination]int
	took  map[combination][]time.Duration
	now   combination
	began time.Time
}

// combination is what a trial's duration depends on.
type combination struct {
	recipe, workload, strategy, transport string
	contenders                            int
	delay                                 time.Duration
}

func combinationOf(t bench.Trial) combination {
	return combination{string(t.Recipe), string(t.Workload), string(t.Strategy), t.Transport.Name, t.Contenders, t.Delay}
}

func newRemaining(trials []bench.Trial) *remaining {
	r := &remaining{left: map[combination]int{}, took: map[combination][]time.Duration{}}
	for _, t := range trials {
		r.left[combinationOf(t)]++
	}
	return r
}

func (r *remaining) begin(t bench.Trial, now time.Time) { r.now, r.began = combinationOf(t), now }

func (r *remaining) end(now time.Time) {
	r.left[r.now]--
	r.took[r.now] = append(r.took[r.now], now.Sub(r.began))
}

// estimate returns how long the rest will take: of a combination that has been
// run, its mean; of one that has not, the mean per contender of those that have.
// It is false as long as nothing is known.
func (r *remaining) estimate() (time.Duration, bool) {
	var sum time.Duration
	contenders := 0
	for c, took := range r.took {
		for _, d := range took {
			sum += d
			contenders += c.contenders
		}
	}
	if contenders == 0 {
		return 0, false
	}
	var left time.Duration
	for c, n := range r.left {
		each := sum / time.Duration(contenders) * time.Duration(c.contenders)
		if took := r.took[c]; len(took) > 0 {
			each = mean(took)
		}
		left += time.Duration(n) * each
	}
	return left, true
}

func mean(all []time.Duration) time.Duration {
	var sum time.Duration
	for _, d := range all {
		sum += d
	}
	return sum / time.Duration(len(all))
}
