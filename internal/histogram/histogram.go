// Package histogram defines the histogram of all records.
package histogram

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Range and precision. Values are nanoseconds.
const (
	shortest = time.Microsecond
	longest  = time.Hour
	digits   = 3 // significant decimal digits
)

// New returns an empty histogram.
func New() *hdrhistogram.Histogram {
	return hdrhistogram.New(int64(shortest), int64(longest), digits)
}

// Record adds a time. A time over an hour counts as an hour.
func Record(h *hdrhistogram.Histogram, d time.Duration) {
	_ = h.RecordValue(int64(min(d, longest)))
}
