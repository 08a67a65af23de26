//go:build !linux

package bench

import (
	"runtime"
	"time"
)

// cpu is not available on this system.
func (t Transport) cpu() (time.Duration, bool) { return 0, false }

// rss returns, for this process (0), the memory that the Go runtime has from the system:
// the closest figure to resident memory that every system has. For other processes it
// returns 0.
func rss(pid int) int64 {
	if pid != 0 {
		return 0
	}
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.Sys - stats.HeapReleased)
}
