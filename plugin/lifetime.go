package plugin

import (
	"fmt"
	"os"

	"github.com/zkrecipes/zkrecipes/internal/rpc/handshake"
)

// lifetime returns a channel that is closed when no process has the writing end of the pipe
// in ZKRECIPES_PLUGIN_LIFETIME open. It returns nil if the variable is not set. A
// goroutine reads the pipe until then, or until this process ends.
func lifetime() (<-chan struct{}, error) {
	value := os.Getenv(handshake.LifetimeEnv)
	if value == "" {
		return nil, nil
	}
	pipe, err := inherited(value)
	if err != nil {
		return nil, fmt.Errorf("%s=%s: %w; it must be the number of a descriptor that this process has inherited, the reading end of a pipe", handshake.LifetimeEnv, value, err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		dropped := make([]byte, 512)
		for err == nil {
			_, err = pipe.Read(dropped)
		}
	}()
	return ended, nil
}
