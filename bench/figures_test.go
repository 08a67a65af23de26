package bench

import (
	"math"
	"runtime/debug"
	"testing"
)

// The collector runs less often while many sessions are opened. Afterwards it runs as before.
func TestGarbageOfManySessionsIsCollectedLessOften(t *testing.T) {
	percent := debug.SetGCPercent(90)
	defer debug.SetGCPercent(percent)
	settings := func() (percent int, limit int64) {
		percent = debug.SetGCPercent(-1)
		debug.SetGCPercent(percent)
		return percent, debug.SetMemoryLimit(-1)
	}
	for _, test := range []struct {
		n        int
		limit    int64 // before
		collects int   // percent
	}{
		{many - 1, math.MaxInt64, 90}, {many, math.MaxInt64, -1}, {many, 1 << 40, 90},
	} {
		debug.SetMemoryLimit(test.limit)
		restore := collectLess(test.n)
		if got, limit := settings(); got != test.collects || (got < 0) != (limit != test.limit) {
			t.Errorf("%d sessions, limit %d: it collects at %d%%, limit %d", test.n, test.limit, got, limit)
		}
		restore()
		if got, limit := settings(); got != 90 || limit != test.limit {
			t.Errorf("%d sessions, limit %d: %d%% and %d are left", test.n, test.limit, got, limit)
		}
	}
	debug.SetMemoryLimit(math.MaxInt64)
}
