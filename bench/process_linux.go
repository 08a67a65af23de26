package bench

import (
	"os"
	"time"

	"github.com/prometheus/procfs"

	"github.com/zkrecipes/zkrecipes/internal/probe"
)

// cpu returns the processor time of the transport's processes so far. ok is false if
// that of one of them cannot be read.
func (t Transport) cpu() (sum time.Duration, ok bool) {
	if t.Processes == nil {
		return 0, true
	}
	for _, pid := range t.Processes() {
		used, ok := probe.ProcessTime(pid)
		if !ok {
			return 0, false
		}
		sum += used
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
