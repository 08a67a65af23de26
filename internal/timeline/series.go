package timeline

import (
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/zkrecipes/zkrecipes/internal/histogram"
)

// Series is what a timeline records. All times count from the beginning of the timeline.
type Series struct {
	Seconds []Second
	// Before is the longest time without a grant between the first grant and the first fault,
	// or until the end if there is no fault.
	Before Gap
	Faults []Outcome // in the order in which they happened
	// Missed are faults that did not happen: the timeline ended before there was a server to
	// kill, or a holder to cut off.
	Missed []Fault `json:",omitempty"`
}

// Second is one second of a timeline. A wait or a handoff belongs to the second in which it ended.
type Second struct {
	Grants  int64
	Wait    Times `json:",omitzero"`  // from the request to the grant
	Handoff Times `json:",omitzero"`  // from the holder's request to leave to the next grant
	Lost    int64 `json:",omitempty"` // sessions that were lost
}

// Times summarizes the times of a second; all are 0 if there were none.
type Times struct{ P50, P99, Max time.Duration }

// Gap is a time without a grant.
type Gap struct{ From, Longest time.Duration }

// Outcome is what followed a fault, until the next fault or the end of the timeline.
type Outcome struct {
	Fault Fault
	Began time.Duration // when the server was killed, or the holder cut off
	// Gap is the longest time without a grant. A gap that had begun before the fault counts
	// from the fault on.
	Gap Gap
	// Recovered is false if there was no grant at all. Then the gap lasted until the next
	// fault or the end, and perhaps longer.
	Recovered bool
	Lost      int64         `json:",omitempty"` // sessions that were lost
	Back      time.Duration `json:",omitempty"` // when the server served again; 0 if the timeline ended before
}

// Recorder makes a series. Its methods may be called from several goroutines. Times of one
// recorder do not decrease; an earlier time counts as the latest.
type Recorder struct {
	length        time.Duration
	mu            sync.Mutex
	series        Series
	wait, handoff *hdrhistogram.Histogram // of the current second
	now           Second                  // the current one
	last          time.Duration           // the latest grant, or the latest fault if that was later
	begun, ended  bool                    // begun: there was a grant
}

// NewRecorder returns a recorder of a timeline that begins now.
// What happens after length, because End comes late, belongs to the last second.
func NewRecorder(length time.Duration) *Recorder {
	return &Recorder{length: length, wait: histogram.New(), handoff: histogram.New()}
}

// Grant records a grant, and how long its contender had waited. handoff is negative if the grant
// was not a handoff. Grant reports whether the timeline has not ended.
func (r *Recorder) Grant(at, wait, handoff time.Duration) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return false
	}
	r.advance(at)
	r.now.Grants++
	histogram.Record(r.wait, wait)
	r.now.Wait.Max = max(r.now.Wait.Max, wait)
	if handoff >= 0 {
		histogram.Record(r.handoff, handoff)
		r.now.Handoff.Max = max(r.now.Handoff.Max, handoff)
	}
	r.gap(at)
	if n := len(r.series.Faults); n > 0 && at > r.series.Faults[n-1].Began {
		r.series.Faults[n-1].Recovered = true
	}
	r.begun, r.last = true, max(r.last, at)
	return true
}

// Lost records that a session was lost.
func (r *Recorder) Lost(at time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return
	}
	r.advance(at)
	r.now.Lost++
	if n := len(r.series.Faults); n > 0 {
		r.series.Faults[n-1].Lost++
	}
}

// Fault records that a fault began. It returns the number of the fault, for Back.
func (r *Recorder) Fault(at time.Duration, f Fault) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		r.series.Missed = append(r.series.Missed, f)
		return -1
	}
	r.advance(at)
	r.gap(at)
	r.begun, r.last = true, max(r.last, at)
	r.series.Faults = append(r.series.Faults, Outcome{Fault: f, Began: r.last})
	return len(r.series.Faults) - 1
}

// Back records that the killed server of a fault serves again.
func (r *Recorder) Back(at time.Duration, fault int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.ended && fault >= 0 {
		r.series.Faults[fault].Back = at
	}
}

// Miss records that a fault did not happen.
func (r *Recorder) Miss(faults ...Fault) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.series.Missed = append(r.series.Missed, faults...)
}

// End ends the timeline. Afterwards only missed faults are recorded.
func (r *Recorder) End(at time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return
	}
	r.gap(at)
	for time.Duration(len(r.series.Seconds))*time.Second < at {
		r.flush()
	}
	r.ended = true
}

// Series returns the series. The caller must have called End.
func (r *Recorder) Series() *Series {
	r.mu.Lock()
	defer r.mu.Unlock()
	return &r.series
}

// advance ends the seconds before that of at.
func (r *Recorder) advance(at time.Duration) {
	for at = min(at, r.length-1); len(r.series.Seconds) < int(at/time.Second); {
		r.flush()
	}
}

func (r *Recorder) flush() {
	quantiles(&r.now.Wait, r.wait)
	quantiles(&r.now.Handoff, r.handoff)
	r.series.Seconds = append(r.series.Seconds, r.now)
	r.now = Second{}
}

func quantiles(t *Times, h *hdrhistogram.Histogram) {
	if h.TotalCount() == 0 {
		return
	}
	// The histogram rounds up. No quantile is above the largest time.
	t.P50 = min(t.Max, time.Duration(h.ValueAtPercentile(50)))
	t.P99 = min(t.Max, time.Duration(h.ValueAtPercentile(99)))
	h.Reset()
}

// gap records the time since the last grant, up to at.
func (r *Recorder) gap(at time.Duration) {
	if !r.begun {
		return
	}
	to := &r.series.Before
	if n := len(r.series.Faults); n > 0 {
		to = &r.series.Faults[n-1].Gap
	}
	if long := at - r.last; long > to.Longest {
		*to = Gap{r.last, long}
	}
}
