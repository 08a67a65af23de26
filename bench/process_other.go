//go:build !linux

package bench

import (
	"runtime"
	"time"
)

// cpu is not known here.
func (t Transport) cpu() (time.Duration, bool) { return 0, false }

// rss returns what the Go runtime of this process (0) has from the system, the
// nearest thing to its resident memory that can be asked for everywhere. Of
// other processes nothing is known.
func rss(pid int) int64 {
	if pid != 0 {
		return 0
	}
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.Sys - stats.HeapReleased)
}
