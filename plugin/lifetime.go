package plugin

import (
	"fmt"
	"os"
)

// LifetimeEnv is the environment variable in which a host says which descriptor of the
// plugin is the reading end of a pipe. When the host has died, the plugin keeps the
// host's sessions for as long as any process has the writing end: see PROTOCOL.md.
const LifetimeEnv = "ZKRECIPES_PLUGIN_LIFETIME"

// lifetime returns a channel that is closed when no process has the writing end of
// LifetimeEnv's pipe, or nil if there is no such pipe. A goroutine waits for that, to the
// end of this process.
func lifetime() (<-chan struct{}, error) {
	value := os.Getenv(LifetimeEnv)
	if value == "" {
		return nil, nil
	}
	pipe, err := inherited(value)
	if err != nil {
		return nil, fmt.Errorf("%s=%s: %w; it must be the number of a descriptor that this process has inherited, the reading end of a pipe", LifetimeEnv, value, err)
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
