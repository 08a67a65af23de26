//go:build !unix

package plugin

import (
	"os"
	"os/signal"
)

// terminations returns a channel that receives nothing on this system. It makes the process
// ignore the interrupt that is meant for its host.
func terminations() <-chan os.Signal {
	signal.Ignore(os.Interrupt)
	return nil
}
