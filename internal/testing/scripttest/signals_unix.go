//go:build unix

package scripttest

import (
	"os"
	"os/signal"
	"syscall"
)

// ResetSignals makes child processes start with the default action for each signal that a
// script may send. A process inherits the signals that its parent ignores: nohup ignores
// HUP, and a shell makes its background processes ignore INT and QUIT. The tests
// themselves still ignore these signals.
func ResetSignals() {
	taken := make(chan os.Signal, 1) // never read
	for _, s := range []os.Signal{
		syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM,
		syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGPIPE,
	} {
		if signal.Ignored(s) {
			signal.Notify(taken, s) // a child does not inherit a caught signal as ignored
		}
	}
}
