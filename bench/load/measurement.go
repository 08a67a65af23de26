package load

import (
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

// recorder collects a measurement from many goroutines.
type recorder struct {
	mu sync.Mutex
	m  Measurement
}

func newRecorder() *recorder {
	return &recorder{m: Measurement{
		Wait: histogram.New(), Handoff: histogram.New(), Service: histogram.New(), Late: histogram.New(),
	}}
}

// count changes a figure of the measurement.
func (r *recorder) count(change func(*Measurement)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change(&r.m)
}

// record adds a time to one of the recorder's histograms.
func (r *recorder) record(h *hdrhistogram.Histogram, d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	histogram.Record(h, d)
}
