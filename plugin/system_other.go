//go:build !unix

package plugin

import (
	"errors"
	"os"
	"os/signal"
)

// inherited fails: processes inherit no descriptors on this system.
func inherited(string) (*os.File, error) {
	return nil, errors.New("processes inherit no descriptors on this system")
}

// terminations returns a channel that receives nothing on this system. It makes the process
// ignore the interrupt that is meant for its host.
func terminations() <-chan os.Signal {
	signal.Ignore(os.Interrupt)
	return nil
}
