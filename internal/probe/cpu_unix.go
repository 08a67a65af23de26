//go:build unix

package probe

import (
	"time"

	"golang.org/x/sys/unix"
)

func cpuTime() time.Duration {
	var usage unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &usage) != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
