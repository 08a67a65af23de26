//go:build unix

package plugin

import (
	"os"
	"os/signal"
	"syscall"
)

// terminations returns a channel that receives SIGTERM. It makes the process ignore the
// signals that are meant for its host.
//
// SIGPIPE is one of them. When the host dies, stderr becomes a pipe without a reader. Go's
// runtime kills a process that writes to such a pipe, before it has closed its sessions.
func terminations() <-chan os.Signal {
	signal.Ignore(syscall.SIGPIPE, syscall.SIGHUP, syscall.SIGINT)
	terminated := make(chan os.Signal, 1)
	signal.Notify(terminated, syscall.SIGTERM)
	return terminated
}
