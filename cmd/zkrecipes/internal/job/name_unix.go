//go:build unix

package job

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// name is what people call a signal: os has "interrupt" for SIGINT.
func name(s os.Signal) string {
	if number, ok := s.(syscall.Signal); ok {
		return unix.SignalName(number)
	}
	return s.String()
}
