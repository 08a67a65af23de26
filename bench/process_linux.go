package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// cpu returns the processor time of the transport's processes so far. ok is false if
// that of one of them cannot be read.
func (t Transport) cpu() (sum time.Duration, ok bool) {
	if t.Processes == nil {
		return 0, true
	}
	for _, pid := range t.Processes() {
		used, ok := cpuOf(pid)
		if !ok {
			return 0, false
		}
		sum += used
	}
	return sum, true
}

// cpuOf adds up the processor time of the threads of a process. The kernel counts it in
// nanoseconds for threads, but in hundredths of a second for a process, and a trial may
// last ten of those. Threads that have ended are missing; a Go program under load ends none.
func cpuOf(pid int) (sum time.Duration, ok bool) {
	files, _ := filepath.Glob(filepath.Join("/proc", strconv.Itoa(pid), "task/*/schedstat"))
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return 0, false
		}
		var used time.Duration
		if _, err := fmt.Sscan(string(text), &used); err != nil {
			return 0, false
		}
		sum += used
	}
	return sum, len(files) > 0
}

// rss returns the resident memory of a process in bytes, 0 if it cannot be read.
// Process 0 is this one.
func rss(pid int) int64 {
	name := "self"
	if pid != 0 {
		name = strconv.Itoa(pid)
	}
	statm, err := os.ReadFile("/proc/" + name + "/statm")
	if err != nil {
		return 0
	}
	var size, resident int64
	if _, err := fmt.Sscan(string(statm), &size, &resident); err != nil {
		return 0
	}
	return resident * int64(os.Getpagesize())
}
