package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// ticks is the unit of processor time in /proc, in parts of a second, on all architectures that
// Go supports.
const ticks = 100

// childrenCPU returns the processor time, in seconds, of the running Java processes that this
// process has started. It returns false if no such process runs.
func childrenCPU() (seconds float64, ok bool) {
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // the process has ended
		}
		if used, mine := parseStat(string(text), os.Getpid()); mine {
			seconds, ok = seconds+used, true
		}
	}
	return seconds, ok
}

// parseStat returns the processor time in a /proc/PID/stat, in seconds, and whether the process
// is a Java process with that parent; see proc(5).
func parseStat(stat string, parent int) (seconds float64, mine bool) {
	_, rest, _ := strings.Cut(stat, "(")
	end := strings.LastIndex(rest, ")")
	if end < 0 || rest[:end] != "java" {
		return 0, false
	}
	fields := strings.Fields(rest[end+1:])
	const ppid, utime, stime = 1, 11, 12 // after the name
	if len(fields) <= stime || fields[ppid] != strconv.Itoa(parent) {
		return 0, false
	}
	user, _ := strconv.ParseFloat(fields[utime], 64)
	system, _ := strconv.ParseFloat(fields[stime], 64)
	return (user + system) / ticks, true
}

// filesystem describes the file system of dir, such as "ext4 on /dev/sda1"; "" if unknown.
func filesystem(dir string) string {
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return ""
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return ""
	}
	return mountOf(string(mounts), dir)
}

// mountOf returns the file system of the mount that contains dir; see fstab(5). A later mount
// hides an earlier one at the same path.
func mountOf(mounts, dir string) string {
	longest, found := -1, ""
	for line := range strings.Lines(mounts) {
		fields := strings.Fields(line)
		if len(fields) < 3 {
			continue
		}
		point := strings.ReplaceAll(fields[1], `\040`, " ")
		inside := dir == point || strings.HasPrefix(dir, strings.TrimSuffix(point, "/")+"/")
		if inside && len(point) >= longest {
			longest, found = len(point), fields[2]+" on "+fields[0]
		}
	}
	return found
}
