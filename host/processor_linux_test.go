package host_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// processorTime returns the processor time of this process and the process pid. 0 means no
// other process.
func processorTime(pid int) (sum time.Duration) {
	for _, process := range []string{"self", strconv.Itoa(pid)} {
		files, _ := filepath.Glob(filepath.Join("/proc", process, "task/*/schedstat"))
		for _, file := range files {
			text, _ := os.ReadFile(file)
			var used time.Duration
			_, _ = fmt.Sscan(string(text), &used)
			sum += used
		}
	}
	return sum
}
