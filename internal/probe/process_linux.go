package probe

import (
	"time"

	"golang.org/x/sys/unix"
)

// ProcessTime returns the processor time of a process so far, that of ended threads included.
// ok is false if the process has ended.
//
// It reads the clock of the process, in nanoseconds. /proc counts the time of a process in
// hundredths of a second, and a trial may last ten of those.
func ProcessTime(pid int) (used time.Duration, ok bool) {
	clock := int32(^pid<<3 | 2) // as clock_getcpuclockid(3) computes it
	var now unix.Timespec
	err := unix.ClockGettime(clock, &now)
	return time.Duration(now.Nano()), err == nil
}
