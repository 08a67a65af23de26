package watchdog

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// process has fields of /proc/PID/stat; see proc(5).
type process struct {
	parent         int
	own, collected time.Duration // processor time: its own, and that of ended children
}

// tick is the unit of processor time on Linux.
const tick = time.Second / 100

// quitChildren sends SIGQUIT to all descendants of this process and returns their number. A
// Go program prints its goroutines and ends. Java prints its threads.
func quitChildren() int {
	started, _ := descendants()
	for _, pid := range started {
		_ = syscall.Kill(pid, syscall.SIGQUIT) // the process may have ended already
	}
	return len(started)
}

// descendants returns the descendants of this process, and the processor time that they,
// and those that have ended, have used up to now.
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
		text, _ := os.ReadFile(file) // the process may have ended
		_, rest, _ := strings.Cut(string(text), " ")
		end := strings.LastIndex(rest, ")") // ends the name, which may contain another
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
