package job

import (
	"os"
	"syscall"
)

// relayedHere are the signals that only Linux has: PWR, and the real-time signals. The C library
// keeps 32 and 33 for itself, and a Go program cannot catch 34, which is SIGRTMIN.
func relayedHere() (all []os.Signal) {
	for s := syscall.Signal(35); s <= 64; s++ {
		all = append(all, s)
	}
	return append(all, syscall.SIGPWR)
}
