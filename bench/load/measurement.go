package load

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/zkrecipes/zkrecipes/internal/zkbench/histogram"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// Measurement is what one load gave.
type Measurement struct {
	// Operations passed in Elapsed: handoffs, or turns if the contender was
	// alone.
	Operations int64
	// Elapsed is from the moment the first measured holder asked to leave to
	// the moment the last was granted, holds in between included. For a
	// contender that was alone it is the time of all its turns.
	Elapsed time.Duration
	// Wait, Handoff and Service are what the package comment says, in
	// nanoseconds. Wait has those who asked in the measured part, which in a
	// drain is nobody. Handoff has those who were in line when the holder
	// before them left: all but those who found the line empty, so a contender
	// alone has none.
	// In an open load Wait counts from the intended start, so that a slow start
	// of the load cannot hide behind itself.
	Wait    *hdrhistogram.Histogram `json:"-"`
	Handoff *hdrhistogram.Histogram `json:"-"`
	Service *hdrhistogram.Histogram `json:"-"`
	// Late is by how much an open load started its acquisitions behind
	// schedule, in nanoseconds; empty for other loads.
	Late *hdrhistogram.Histogram `json:"-"`
	// Unfinished is how many acquisitions of an open load were still waiting
	// when it gave up on them; their waits so far are in Wait.
	Unfinished int64 `json:",omitempty"`
	// Turns is how many of the operations each contender had, by its number.
	// A drain, which gives one to everybody, has none.
	Turns []int64 `json:",omitempty"`
	// Grants are those of a line that is shared with other processes, in the
	// order in which they were given; nil for other loads, and after Merge.
	Grants []Grant `json:"-"`
	// Warm is how the warm-up ended.
	Warm Warm `json:",omitzero"`
	// Counters is what all sessions sent and received in the measured part,
	// keep-alives that fell into it included.
	Counters recipes.Stats
}

// Warm is the outcome of a warm-up.
type Warm struct {
	Took   time.Duration // from the first grant to the begin of the measured part
	Steady bool          // false: it ended because it had lasted long enough
}

type recorder struct {
	mu sync.Mutex
	m  Measurement
}

func newRecorder() *recorder {
	return &recorder{m: Measurement{
		Wait: histogram.New(), Handoff: histogram.New(), Service: histogram.New(), Late: histogram.New(),
	}}
}

func (r *recorder) count(change func(*Measurement)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change(&r.m)
}

func (r *recorder) record(h *hdrhistogram.Histogram, d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	histogram.Record(h, d)
}

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

type placed struct {
	Grant
	part int
}

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
