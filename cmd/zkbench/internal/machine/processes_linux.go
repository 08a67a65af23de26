package machine

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/prometheus/procfs"

	"github.com/zkrecipes/zkrecipes/internal/probe"
)

// ServersCPU returns the processor time, in seconds, of the running Java processes that this
// process has started. It returns false if no such process runs.
func ServersCPU() (seconds float64, ok bool) {
	all, _ := procfs.AllProcs()
	for _, p := range all {
		// On an error the process has ended.
		if stat, err := p.Stat(); err == nil && stat.Comm == "java" && stat.PPID == os.Getpid() {
			used, _ := probe.ProcessTime(p.PID)
			seconds, ok = seconds+used.Seconds(), true
		}
	}
	return seconds, ok
}

// filesystem describes the file system of dir, such as "ext4 on /dev/sda1"; "" if unknown. It takes
// the mount with the longest path that contains dir. A later mount hides an earlier one at the same
// path.
func filesystem(dir string) (found string) {
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return ""
	}
	mounts, _ := procfs.GetMounts()
	longest := -1
	for _, m := range mounts {
		point := strings.ReplaceAll(m.MountPoint, `\040`, " ")
		inside := dir == point || strings.HasPrefix(dir, strings.TrimSuffix(point, "/")+"/")
		if inside && len(point) >= longest {
			longest, found = len(point), m.FSType+" on "+m.Source
		}
	}
	return found
}
