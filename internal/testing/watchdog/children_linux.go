package watchdog

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// process is what /proc tells of one; see proc(5).
type process struct {
	parent         int
	own, collected time.Duration // processor time: its own, and of children that have ended
}

// tick is the unit of processor time on Linux.
const tick = time.Second / 100

// quitChildren sends SIGQUIT to all that this process has started, and to what those
// have, and returns how many there were. A Go program prints its goroutines and ends;
// Java prints its threads.
func quitChildren() int {
	started, _ := descendants()
	for _, pid := range started {
		_ = syscall.Kill(pid, syscall.SIGQUIT) // it may have ended since
	}
	return len(started)
}

// descendants returns all that this process has started, and what those have, and how
// much processor time they have used up to now, with those that have ended.
func descendants() (pids []int, used time.Duration) {
	all := processes()
	used = all[os.Getpid()].collected
	started := map[int]bool{os.Getpid(): true}
	for grown := true; grown; {
		grown = false
		for pid, p := range all {
			if started[p.parent] && !started[pid] {
				started[pid], grown = true, true
				pids, used = append(pids, pid), used+p.own+p.collected
			}
		}
	}
	return pids, used
}

func processes() map[int]process {
	all := map[int]process{}
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range files {
		text, _ := os.ReadFile(file) // it may have ended since
		_, rest, _ := strings.Cut(string(text), " ")
		end := strings.LastIndex(rest, ")") // of the name, which may have one in it
		fields := strings.Fields(rest[end+1:])
		const ppid, utime, stime, cutime, cstime = 1, 11, 12, 13, 14 // after the name
		if end < 0 || len(fields) <= cstime {
			continue
		}
		number := func(i int) time.Duration {
			n, _ := strconv.Atoi(fields[i])
			return time.Duration(n)
		}
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		all[pid] = process{
			parent: int(number(ppid)), own: tick * (number(utime) + number(stime)), collected: tick * (number(cutime) + number(cstime)),
		}
	}
	return all
}
