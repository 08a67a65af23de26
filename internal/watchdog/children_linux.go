package watchdog

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// quitChildren sends SIGQUIT to all that this process has started, and to what those
// have, and returns how many there were. A Go program prints its goroutines and ends;
// Java prints its threads.
func quitChildren() int {
	started := map[int]bool{os.Getpid(): true}
	for grown := true; grown; {
		grown = false
		for pid, parent := range parents() {
			if started[parent] && !started[pid] {
				started[pid], grown = true, true
			}
		}
	}
	delete(started, os.Getpid())
	for pid := range started {
		_ = syscall.Kill(pid, syscall.SIGQUIT) // it may have ended since
	}
	return len(started)
}

// parents returns the parent of each process; see proc(5).
func parents() map[int]int {
	all := map[int]int{}
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range files {
		text, _ := os.ReadFile(file) // it may have ended since
		_, rest, _ := strings.Cut(string(text), " ")
		end := strings.LastIndex(rest, ")") // of the name, which may have one in it
		fields := strings.Fields(rest[end+1:])
		if end < 0 || len(fields) < 2 {
			continue
		}
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		all[pid], _ = strconv.Atoi(fields[1])
	}
	return all
}
