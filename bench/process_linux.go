package bench

import (
	"os"
	"time"

	"github.com/prometheus/procfs"
)

// cpu returns the processor time of the transport's processes so far. ok is false if
// that of one of them cannot be read.
//
// It adds up the times of threads. The kernel counts those in nanoseconds, but the time of a
// process in hundredths of a second, and a trial may last ten of those. Threads that have ended
// are missing; a Go program under load ends none.
func (t Transport) cpu() (sum time.Duration, ok bool) {
	if t.Processes == nil {
		return 0, true
	}
	for _, pid := range t.Processes() {
		threads, err := procfs.AllThreads(pid)
		if err != nil || len(threads) == 0 {
			return 0, false
		}
		for _, thread := range threads {
			used, err := thread.Schedstat()
			if err != nil {
				return 0, false
			}
			sum += time.Duration(used.RunningNanoseconds)
		}
	}
	return sum, true
}

// rss returns the resident memory of a process in bytes, 0 if it cannot be read.
// Process 0 is this one.
func rss(pid int) int64 {
	if pid == 0 {
		pid = os.Getpid()
	}
	p, err := procfs.NewProc(pid)
	if err != nil {
		return 0
	}
	stat, _ := p.Stat()
	return int64(stat.ResidentMemory())
}
