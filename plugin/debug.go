package plugin

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	goplugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	"github.com/zkrecipes/zkrecipes/internal/rpc/server"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// ReattachEnv names the environment variable that has a host use a plugin that
// runs already, for example in a debugger, instead of launching one. Its value
// is a [Reattach] in JSON, as zkrecipes-plugin -debug prints it.
const ReattachEnv = "ZKRECIPES_PLUGIN_REATTACH"

// Reattach is where a plugin that is being debugged serves.
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
	case r.ProtocolVersion != ProtocolVersion:
		return r, fmt.Errorf("%s: the plugin speaks protocol %d, this host %d", ReattachEnv, r.ProtocolVersion, ProtocolVersion)
	}
	return r, nil
}

// Debug serves sessions that open opens to every host that has ReattachEnv, until
// ctx ends. Several hosts may come, one after the other or at the same time.
// announce is called once, with the address.
//
// It is for debugging only. No host has launched this process, so there are no
// certificates to agree on: the connection is neither encrypted nor authenticated.
// On Unix only the permissions of the socket's directory keep other users away.
// Debug fails in a process that was told to use AutoMTLS. A host that dies takes its
// sessions with it, as always, but not this process.
func Debug(ctx context.Context, open recipes.Opener, announce func(Reattach), options ...Option) error {
	cfg, err := configure(open, options)
	if err != nil {
		return err
	}
	if os.Getenv(clientCertificate) != "" {
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
		HandshakeConfig:  Handshake(),
		VersionedPlugins: versioned(func(s *grpc.Server) error { srv.Register(s); return nil }),
		Logger:           cfg.Logger,
		GRPCServer:       grpcServer(srv),
		Test:             &goplugin.ServeTestConfig{Context: ctx, ReattachConfigCh: ready, CloseCh: closed},
	})
	select {
	case r := <-ready:
		announce(Reattach{ProtocolVersion: r.ProtocolVersion, PID: r.Pid, Network: r.Addr.Network(), Address: r.Addr.String()})
	case <-closed:
		return fmt.Errorf("the plugin could not listen; its log says why")
	}
	<-closed
	closing, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	return srv.Close(closing)
}
