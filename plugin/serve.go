// Package plugin turns a program into a zkrecipes plugin: an executable that a host launches
// and that serves the contract (package recipes) over gRPC. The whole main function of a
// plugin is
//
//	func main() { plugin.Serve(zookeeper.Open) }
//
// [Limits], [Resume] and [Telemetry] are options of [Serve].
//
// plugin/proto defines the interface, and internal/rpc implements both sides of it in Go.
// Hosts import package host.
package plugin

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	goplugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/zkrecipes/zkrecipes/internal/rpc/handshake"
	"github.com/zkrecipes/zkrecipes/internal/rpc/server"
	"github.com/zkrecipes/zkrecipes/recipes"
)

const (
	// attachTimeout bounds the wait for the first host.
	attachTimeout = 10 * time.Second
	// closeTimeout bounds the closing of sessions when the host has ended or the process is
	// asked to end. ZooKeeper's timeout ends the rest.
	closeTimeout = 800 * time.Millisecond
)

// Exit codes of a plugin that has not served its host to the end. The plugin reports the
// reason on stderr. PROTOCOL.md promises them.
const (
	exitNotLaunched  = 1 // not launched by a host, or an option is invalid
	exitNotAttached  = 3 // no host has attached
	exitCannotListen = 4 // for example because of PLUGIN_UNIX_SOCKET_DIR
	exitCertificate  = 5 // PLUGIN_CLIENT_CERT is not a certificate
	exitLifetime     = 6 // ZKRECIPES_PLUGIN_LIFETIME is not a pipe
)

// Serve serves sessions that open opens to the host that launched this process. It returns
// when the host has closed the plugin or has died in any way. All sessions are closed by
// then, or a bounded attempt to close them has been made; main has nothing left to do. How
// long the sessions of a dead host last is set by its host.Config.Lifetime.
//
// A process that was not launched by a host, or that cannot serve one, reports that on stderr
// and exits with a code other than 0. A process to which no host attaches within ten seconds exits
// in the same way.
//
// Signals: Serve ignores an interrupt, because a host in another language may leave the plugin
// in the host's process group, and the host decides what to release. It ignores a hang-up too.
// On SIGTERM it notifies the hosts of all sessions that they are lost, closes the sessions, and
// ends the process.
func Serve(open recipes.Opener, options ...Option) {
	if code := serve(open, options); code != 0 {
		os.Exit(code)
	}
}

func serve(open recipes.Opener, options []Option) (exitCode int) {
	if cookie := handshake.Config(); os.Getenv(cookie.MagicCookieKey) != cookie.MagicCookieValue {
		fmt.Fprint(os.Stderr, About(filepath.Base(os.Args[0])))
		return exitNotLaunched
	}
	cfg, err := configure(open, options)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return exitNotLaunched
	}
	defer removeSocketDirectory()
	if cfg.Lifetime, err = lifetime(); err != nil {
		cfg.Logger.Error(err.Error())
		return exitLifetime
	}
	var secured func() (*tls.Config, error)
	var config *tls.Config
	if pem := os.Getenv(handshake.CertificateEnv); pem != "" {
		var certificate []byte
		config, certificate, err = mutualTLS(pem)
		if err != nil {
			cfg.Logger.Error(err.Error())
			return exitCertificate
		}
		restore, err := printCertificate(certificate)
		if err != nil {
			cfg.Logger.Error("cannot prepare the handshake", "error", err)
			return exitCannotListen
		}
		defer restore()
		secured = func() (*tls.Config, error) { return config, nil }
	}
	terminated := terminations()

	srv := server.New(cfg)
	serving, closeCalls := context.WithCancel(context.Background())
	defer closeCalls() // the process, and the calls on its connections, end soon after
	process := &process{server: srv, logger: cfg.Logger, stopped: make(chan struct{})}
	transport := insecure.NewCredentials()
	if config != nil {
		transport = credentials.NewTLS(config)
	}
	listens := false
	var watch sync.WaitGroup
	goplugin.Serve(&goplugin.ServeConfig{
		HandshakeConfig:  handshake.Config(),
		VersionedPlugins: handshake.Plugin(func(s *grpc.Server) error { srv.Register(s); return nil }),
		Logger:           cfg.Logger,
		TLSProvider:      secured,
		GRPCServer: func(opts []grpc.ServerOption) *grpc.Server {
			listens = true
			opts = append(opts, grpc.Creds(server.Connections(transport, func(c net.Conn) { srv.ServeCalls(serving, c) }))) // replaces go-plugin's
			s := grpcServer(srv)(opts)
			watch.Go(func() { process.watch(s, terminated) })
			watch.Go(func() { trim(process.stopped) })
			return s
		},
	})
	close(process.stopped) // watch, or go-plugin's own Shutdown, has stopped the gRPC server
	process.closeSessions("the server has stopped")
	watch.Wait()
	switch {
	case !listens: // go-plugin has logged why
		return exitCannotListen
	case process.unattended:
		return exitNotAttached
	}
	return 0
}

func grpcServer(s *server.Server) func([]grpc.ServerOption) *grpc.Server {
	return func(opts []grpc.ServerOption) *grpc.Server {
		return grpc.NewServer(append(opts, s.Options()...)...)
	}
}

// process decides when a plugin ends.
type process struct {
	server *server.Server
	logger hclog.Logger
	once   sync.Once
	// stopped is closed when go-plugin no longer serves.
	stopped chan struct{}
	// unattended is set by watch when no host has attached.
	unattended bool
}

// watch stops the gRPC server, and with it Serve, when no host needs the plugin any more.
// Without watch, a plugin that logs nothing would outlive a killed host and keep its sessions
// and locks, because go-plugin does not end it.
func (p *process) watch(s *grpc.Server, terminated <-chan os.Signal) {
	attach := time.NewTimer(attachTimeout)
	defer attach.Stop()
	defer s.Stop()
	attached := p.server.Attached()
	for {
		select {
		case <-attached:
			attached = nil
			attach.Stop()
		case <-attach.C:
			p.logger.Error("no host has attached", "within", attachTimeout.String())
			p.unattended = true
			p.closeSessions("no host has attached")
			return
		case <-p.server.Orphaned():
			p.closeSessions("the host has gone")
			return
		case <-p.stopped:
			return
		case sig := <-terminated:
			p.closeSessions(sig.String())
			return
		}
	}
}

func (p *process) closeSessions(why string) {
	p.once.Do(func() {
		p.logger.Debug("closing sessions", "because", why, "sessions", p.server.Sessions())
		ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
		defer cancel()
		if err := p.server.Close(ctx); err != nil {
			p.logger.Warn("some sessions are left to their timeout", "error", err)
		}
	})
}

// logName is the name of a plugin's logger. Subsystems append their names:
// "zkrecipes-plugin.session".
const logName = "zkrecipes-plugin"

// logger returns a logger that writes JSON to stderr: only JSON reaches the host's logger with
// its level. The logger keeps the real stderr, because go-plugin replaces os.Stderr.
func logger() hclog.Logger {
	level := hclog.LevelFromString(os.Getenv(handshake.LogLevelEnv))
	if level == hclog.NoLevel {
		level = hclog.Info
	}
	return hclog.New(&hclog.LoggerOptions{Name: logName, Level: level, Output: os.Stderr, JSONFormat: true})
}

// About describes a plugin executable of that name and its use.
func About(name string) string {
	return fmt.Sprintf(`%s is a zkrecipes plugin: it gives a host application the ZooKeeper
recipes over gRPC. It does nothing by itself; a host launches it:

    p, err := host.Launch(ctx, host.Config{Path: %q})
    session, err := p.Open(ctx, recipes.SessionConfig{Servers: []string{"127.0.0.1:2181"}})

See https://pkg.go.dev/github.com/zkrecipes/zkrecipes/host
`, name, "/path/to/"+name)
}

// removeSocketDirectory removes the directory that a host made for the socket; a killed host
// cannot do that. It removes only a directory with go-plugin's name pattern, and only if it
// is empty.
func removeSocketDirectory() {
	dir := os.Getenv(goplugin.EnvUnixSocketDir)
	if strings.HasPrefix(filepath.Base(dir), "plugin-dir") {
		_ = os.Remove(dir)
	}
}

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
