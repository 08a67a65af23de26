//go:build unix

package scripttest

import (
	"os"
	"os/signal"
	"syscall"
)

// ResetSignals has the processes that the tests start begin with the default action
// for each signal that a script may send. A process inherits what its parent ignores:
// nohup ignores HUP, and a shell ignores INT and QUIT in its background. The tests
// themselves go on to ignore these signals.
func ResetSignals() {
	taken := make(chan os.Signal, 1) // nobody reads it
	for _, s := range []os.Signal{
		syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM,
		syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGPIPE,
	} {
		if signal.Ignored(s) {
			signal.Notify(taken, s) // a signal that is taken is not inherited as ignored
		}
	}
}
