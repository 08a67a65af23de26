package plugin

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	goplugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	"github.com/zkrecipes/zkrecipes/internal/rpc/handshake"
	"github.com/zkrecipes/zkrecipes/internal/rpc/server"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// Debug serves sessions that open opens until ctx ends, to every host with a certain
// environment variable. Several hosts may connect, at the same time or in turn. Debug calls
// announce once, with the name and value of that variable. A host that has it launches no
// plugin and uses this process, which may run in a debugger.
//
// It is for debugging only. No host has launched this process, so no certificates could be
// agreed on: the connection is neither encrypted nor authenticated. On Unix only the
// permissions of the socket's directory keep other users away. Debug fails in a process that
// is configured for AutoMTLS. The sessions of a host that dies end as always, but this
// process continues.
func Debug(ctx context.Context, open recipes.Opener, announce func(name, value string), options ...Option) error {
	cfg, err := configure(open, options)
	if err != nil {
		return err
	}
	if os.Getenv(handshake.CertificateEnv) != "" {
		return fmt.Errorf("a plugin that is being debugged cannot use AutoMTLS: unset PLUGIN_CLIENT_CERT, or have the host launch the plugin")
	}
	dir, err := os.MkdirTemp("", "plugin-dir") // of mode 0700
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := os.Setenv(goplugin.EnvUnixSocketDir, dir); err != nil {
		return err
	}
	srv := server.New(cfg)
	ready := make(chan *goplugin.ReattachConfig, 1)
	closed := make(chan struct{})
	go goplugin.Serve(&goplugin.ServeConfig{ // closes closed
		HandshakeConfig:  handshake.Config(),
		VersionedPlugins: handshake.Plugin(func(s *grpc.Server) error { srv.Register(s); return nil }),
		Logger:           cfg.Logger,
		GRPCServer:       grpcServer(srv),
		Test:             &goplugin.ServeTestConfig{Context: ctx, ReattachConfigCh: ready, CloseCh: closed},
	})
	select {
	case r := <-ready:
		value, err := json.Marshal(handshake.Reattach{ProtocolVersion: r.ProtocolVersion, PID: r.Pid, Network: r.Addr.Network(), Address: r.Addr.String()})
		if err != nil { // numbers and strings
			panic(err)
		}
		announce(handshake.ReattachEnv, string(value))
	case <-closed:
		return fmt.Errorf("the plugin could not listen; its log says why")
	}
	<-closed
	closing, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	return srv.Close(closing)
}
