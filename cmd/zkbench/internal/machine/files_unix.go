//go:build unix

package machine

import "syscall"

// mostOpenFiles returns how many files this process may have open: the hard limit, to which
// every Go program raises its soft limit at its start. It returns false if the limit is unknown.
func mostOpenFiles() (int, bool) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0, false
	}
	// On some systems "no limit" is a number that does not fit into an int.
	return int(min(limit.Cur, 1<<40)), true
}
