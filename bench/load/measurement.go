package load

import (
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// Range and precision of all histograms. Their values are nanoseconds.
const (
	ShortestTime = time.Microsecond
	LongestTime  = time.Hour
	Digits       = 3 // significant decimal digits
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
	Wait, Handoff, Service *hdrhistogram.Histogram
	// Counters is what all sessions sent and received in the measured part,
	// keep-alives that fell into it included.
	Counters recipes.Counters
}

// recorder collects a measurement from many goroutines.
type recorder struct {
	mu sync.Mutex
	m  Measurement
}

func newRecorder() *recorder {
	return &recorder{m: Measurement{Wait: NewHistogram(), Handoff: NewHistogram(), Service: NewHistogram()}}
}

// NewHistogram returns an empty histogram of the package's range and precision.
func NewHistogram() *hdrhistogram.Histogram {
	return hdrhistogram.New(int64(ShortestTime), int64(LongestTime), Digits)
}

// record adds a time to one of the recorder's histograms.
func (r *recorder) record(h *hdrhistogram.Histogram, d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	// Out of range can only be the longest time: no trial lasts that long, and
	// the clock is monotonic.
	_ = h.RecordValue(int64(min(d, LongestTime)))
}
