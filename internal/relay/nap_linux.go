package relay

import (
	"time"

	"golang.org/x/sys/unix"
)

// nap sleeps for d, late by some 60 µs, or less when a signal comes.
func nap(d time.Duration) {
	left := unix.NsecToTimespec(int64(d))
	_ = unix.Nanosleep(&left, nil)
}
