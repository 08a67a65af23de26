//go:build unix

package main

import "syscall"

// mostOpenFiles returns how many files this process may have open: the hard limit, to
// which every Go program raises its soft one when it starts. It is false where that
// cannot be found out.
func mostOpenFiles() (int, bool) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0, false
	}
	// On some systems no limit is a number that an int does not hold.
	return int(min(limit.Cur, 1<<40)), true
}
