// Package handshake is what a host and a plugin agree on before they speak gRPC: the
// names and values of go-plugin's handshake, and the environment of a plugin process.
// plugin/proto/PROTOCOL.md lists them for hosts in other languages.
package handshake

import (
	"context"
	"errors"

	goplugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
)

// Name is what the plugin is dispensed by.
const Name = "recipes"

// Version is the version of zkrecipes.v1 in go-plugin's handshake.
const Version = 1

const (
	// LogLevelEnv is the environment variable in which a host passes the level that the
	// plugin logs at, by hclog's names.
	LogLevelEnv = "ZKRECIPES_PLUGIN_LOG_LEVEL"

	// LifetimeEnv is the environment variable in which a host says which descriptor of the
	// plugin is the reading end of a pipe. When the host has died, the plugin keeps the
	// host's sessions for as long as any process has the writing end.
	LifetimeEnv = "ZKRECIPES_PLUGIN_LIFETIME"
)

// Config is go-plugin's magic cookie. It is public and protects nothing. By it a plugin
// knows whether a host has started it, or a person.
func Config() goplugin.HandshakeConfig {
	return goplugin.HandshakeConfig{
		MagicCookieKey:   "ZKRECIPES_PLUGIN",
		MagicCookieValue: "5b1c9f0e-recipes-of-zookeeper",
	}
}

// Host is what a host can talk to. The dispensed value is the *grpc.ClientConn to the
// plugin.
func Host() map[int]goplugin.PluginSet {
	return Plugin(func(*grpc.Server) error { return errors.New("a host serves nothing") })
}

// Plugin is what a plugin serves: the services that register registers.
func Plugin(register func(*grpc.Server) error) map[int]goplugin.PluginSet {
	return map[int]goplugin.PluginSet{Version: {Name: &ends{register: register}}}
}

// ends leaves everything to the services' own stubs: go-plugin only has to bring the two
// ends together.
type ends struct {
	goplugin.NetRPCUnsupportedPlugin
	register func(*grpc.Server) error
}

func (p *ends) GRPCServer(_ *goplugin.GRPCBroker, s *grpc.Server) error { return p.register(s) }

func (p *ends) GRPCClient(_ context.Context, _ *goplugin.GRPCBroker, conn *grpc.ClientConn) (any, error) {
	return conn, nil
}
