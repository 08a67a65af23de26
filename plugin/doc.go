// Package plugin turns a program into a zkrecipes plugin: an executable that a
// host launches and that serves the contract (package recipes) over gRPC. The
// whole of a plugin's main is
//
//	func main() { plugin.Serve(zookeeper.Open) }
//
// [Limits] and [Telemetry] are options of [Serve].
//
// plugin/proto is the interface, internal/rpc the two halves of it in Go. Hosts
// import package host.
package plugin

import (
	"context"
	"errors"

	goplugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
)

// Name is what the plugin is dispensed by.
const Name = "recipes"

// ProtocolVersion is the version of zkrecipes.v1 in go-plugin's handshake.
const ProtocolVersion = 1

// LogLevelEnv is the environment variable in which a host passes the level
// that the plugin logs at, by hclog's names.
const LogLevelEnv = "ZKRECIPES_PLUGIN_LOG_LEVEL"

// Handshake is go-plugin's magic cookie. It is public and protects nothing. By it a
// plugin knows whether a host has started it, or a person.
func Handshake() goplugin.HandshakeConfig {
	return goplugin.HandshakeConfig{
		MagicCookieKey:   "ZKRECIPES_PLUGIN",
		MagicCookieValue: "5b1c9f0e-recipes-of-zookeeper",
	}
}

// VersionedPlugins is what a host can talk to. The dispensed value is the
// *grpc.ClientConn to the plugin.
func VersionedPlugins() map[int]goplugin.PluginSet {
	return versioned(func(*grpc.Server) error { return errors.New("a host serves nothing") })
}

func versioned(register func(*grpc.Server) error) map[int]goplugin.PluginSet {
	return map[int]goplugin.PluginSet{ProtocolVersion: {Name: &grpcPlugin{register: register}}}
}

// grpcPlugin leaves everything to the services' own stubs: go-plugin only has
// to bring the two ends together.
type grpcPlugin struct {
	goplugin.NetRPCUnsupportedPlugin
	register func(*grpc.Server) error
}

func (p *grpcPlugin) GRPCServer(_ *goplugin.GRPCBroker, s *grpc.Server) error { return p.register(s) }

func (p *grpcPlugin) GRPCClient(_ context.Context, _ *goplugin.GRPCBroker, conn *grpc.ClientConn) (any, error) {
	return conn, nil
}
