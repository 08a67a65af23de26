package load

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/zkrecipes/zkrecipes/internal/zkbench/histogram"
)

// merge adds measurements that were made at the same time. Histograms add
// exactly: the sum is the histogram of all that was recorded.
func merge(parts []Measurement) Measurement {
	sum := newRecorder().m
	sum.Warm.Steady = true
	sum.Counters = difference(sum.Counters, sum.Counters)
	for _, p := range parts {
		sum.Operations += p.Operations
		sum.Elapsed = max(sum.Elapsed, p.Elapsed)
		sum.Unfinished += p.Unfinished
		sum.Turns = append(sum.Turns, p.Turns...)
		sum.Warm.Took = max(sum.Warm.Took, p.Warm.Took)
		sum.Warm.Steady = sum.Warm.Steady && p.Warm.Steady
		add(&sum.Counters, p.Counters, 1)
		for _, h := range []struct{ to, from *hdrhistogram.Histogram }{
			{sum.Wait, p.Wait}, {sum.Handoff, p.Handoff}, {sum.Service, p.Service}, {sum.Late, p.Late},
		} {
			h.to.Merge(h.from)
		}
	}
	return sum
}

// Merge adds what several processes measured of one load. Of a line that they shared
// (see Load.Shared) the tokens tell the order of all grants, and are checked. No two
// may be the same. Those of one process, in the order of its grants, have to grow. What
// breaks that is a [*Violation].
//
// Not checked, because the clocks of two machines do not agree to the length of a
// handoff, is that two processes did not hold at the same moment. For the same
// reason Handoff has only those handoffs whose two sides are of one process.
// Elapsed is that of the process that was busy for longest.
func Merge(w Workload, parts []Measurement) (Measurement, error) {
	sum := merge(parts)
	if w != Drain && w != Cycle && w != Open {
		return sum, nil
	}
	grants, err := inOrder(parts)
	if err != nil || w == Open {
		return sum, err
	}
	sum.Operations-- // the first grant of all was not a handoff
	for i := 1; i < len(grants); i++ {
		from, to := grants[i-1], grants[i]
		if from.part == to.part && to.Joined <= from.Left {
			histogram.Record(sum.Handoff, max(0, to.Granted-from.Left))
		}
	}
	return sum, nil
}

// placed is a grant and the process that got it.
type placed struct {
	Grant
	part int
}

// inOrder returns the grants of all parts in the order of their tokens.
func inOrder(parts []Measurement) ([]placed, error) {
	var all []placed
	for i, p := range parts {
		for j, g := range p.Grants {
			if j > 0 && g.Token <= p.Grants[j-1].Token {
				return nil, &Violation{"growing tokens", fmt.Sprintf("process %d was granted with token %d after token %d", i+1, g.Token, p.Grants[j-1].Token)}
			}
			all = append(all, placed{g, i})
		}
	}
	slices.SortFunc(all, func(a, b placed) int { return cmp.Compare(a.Token, b.Token) })
	for i := 1; i < len(all); i++ {
		if a, b := all[i-1], all[i]; a.Token == b.Token {
			return nil, &Violation{"growing tokens", fmt.Sprintf("processes %d and %d were both granted with token %d", a.part+1, b.part+1, a.Token)}
		}
	}
	return all, nil
}
