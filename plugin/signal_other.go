//go:build !unix

package plugin

import (
	"os"
	"os/signal"
)

// terminations returns a channel that gets nothing here, and has the process
// ignore the interrupt that is meant for its host.
func terminations() <-chan os.Signal {
	signal.Ignore(os.Interrupt)
	return nil
}
