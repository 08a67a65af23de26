package handshake

import (
	"encoding/json"
	"fmt"
)

// ReattachEnv names the environment variable that makes a host use a running plugin, for
// example one in a debugger, instead of launching one. Its value is a [Reattach] in JSON.
const ReattachEnv = "ZKRECIPES_PLUGIN_REATTACH"

// Reattach is the address of a plugin that is being debugged.
type Reattach struct {
	ProtocolVersion int    `json:"protocol_version"`
	PID             int    `json:"pid"`
	Network         string `json:"network"` // "unix" or "tcp"
	Address         string `json:"address"`
}

// ParseReattach reads the value of ReattachEnv.
func ParseReattach(value string) (Reattach, error) {
	var r Reattach
	if err := json.Unmarshal([]byte(value), &r); err != nil {
		return r, fmt.Errorf("%s is not what zkrecipes-plugin -debug prints: %w", ReattachEnv, err)
	}
	switch {
	case r.Network != "unix" && r.Network != "tcp" || r.Address == "":
		return r, fmt.Errorf("%s: no address to connect to in %q", ReattachEnv, value)
	case r.ProtocolVersion != Version:
		return r, fmt.Errorf("%s: the plugin has protocol version %d, this host %d", ReattachEnv, r.ProtocolVersion, Version)
	}
	return r, nil
}
