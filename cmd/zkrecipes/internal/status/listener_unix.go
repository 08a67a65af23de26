//go:build unix

package status

import (
	"errors"
	"os"
	"syscall"
)

// scarce reports whether this process has fewer free descriptors than spare.
func scarce() bool {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil {
		return false
	}
	open, err := os.ReadDir("/dev/fd")
	if err != nil {
		return errors.Is(err, syscall.EMFILE)
	}
	return uint64(len(open))+spare > uint64(limit.Cur)
}
