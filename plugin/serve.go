package plugin

import (
	"context"
	"crypto/tls"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	goplugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/zkrecipes/zkrecipes/internal/rpc/handshake"
	"github.com/zkrecipes/zkrecipes/internal/rpc/server"
	"github.com/zkrecipes/zkrecipes/recipes"
)

const (
	// attachTimeout is how long a plugin waits for its first host.
	attachTimeout = 10 * time.Second
	// closeTimeout bounds the closing of sessions when the host has gone or
	// the process is told to end. ZooKeeper's timeout ends what is left.
	closeTimeout = 800 * time.Millisecond
)

// Exit codes of a plugin that has not served its host to the end. The plugin says why
// on stderr. PROTOCOL.md promises them.
const (
	exitNotLaunched   = 1 // by a host; or an option is wrong
	exitNobody        = 3 // no host has attached
	exitCannotListen  = 4 // for example because of PLUGIN_UNIX_SOCKET_DIR
	exitCertificate   = 5 // PLUGIN_CLIENT_CERT is not a certificate
	exitLifetime      = 6 // handshake.LifetimeEnv is not a pipe
	clientCertificate = "PLUGIN_CLIENT_CERT"
)

// Serve serves sessions that open opens to the host that launched this process,
// and returns when the host has gone: it closed the plugin, or it died, however
// it died. Sessions of a host that has died last as its host.Config.Lifetime says. All
// sessions are closed by then, or a bounded attempt to close them has been made; main has
// nothing left to do.
//
// A process that no host has launched, or that cannot serve one, says so on stderr and
// exits with a code other than 0. So does one to which no host has attached within ten
// seconds.
//
// Signals: an interrupt is ignored, because Ctrl-C at the host's terminal
// reaches the plugin too, and the host decides what to release; so is a hang-up.
// SIGTERM tells the hosts of all sessions that they are lost, closes them, and
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
	if pem := os.Getenv(clientCertificate); pem != "" {
		var certificate []byte
		config, certificate, err = mutualTLS(pem)
		if err != nil {
			cfg.Logger.Error(err.Error())
			return exitCertificate
		}
		restore, err := tellCertificate(certificate)
		if err != nil {
			cfg.Logger.Error("cannot prepare the handshake", "error", err)
			return exitCannotListen
		}
		defer restore()
		secured = func() (*tls.Config, error) { return config, nil }
	}
	terminated := terminations()

	srv := server.New(cfg)
	calls := newCallConnections(srv)
	defer calls.close()
	process := &process{server: srv, logger: cfg.Logger, stopped: make(chan struct{})}
	transport := insecure.NewCredentials()
	if config != nil {
		transport = calls.credentials(config)
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
			opts = append(opts, grpc.Creds(server.Connections(transport))) // in go-plugin's place
			s := grpcServer(srv)(opts)
			watch.Go(func() { process.watch(s, terminated) })
			watch.Go(func() { trim(process.stopped) })
			return s
		},
	})
	close(process.stopped) // by the watch, or by go-plugin's own Shutdown
	process.closeSessions("the server has stopped")
	watch.Wait()
	switch {
	case !listens: // go-plugin has logged why
		return exitCannotListen
	case process.unattended:
		return exitNobody
	}
	return 0
}

// grpcServer makes the gRPC server that go-plugin asks for.
func grpcServer(s *server.Server) func([]grpc.ServerOption) *grpc.Server {
	return func(opts []grpc.ServerOption) *grpc.Server {
		return grpc.NewServer(append(opts, s.Options()...)...)
	}
}

// process ends a plugin at the right time.
type process struct {
	server *server.Server
	logger hclog.Logger
	once   sync.Once
	// stopped is closed when go-plugin no longer serves.
	stopped chan struct{}
	// unattended is set by watch when nobody has attached.
	unattended bool
}

// watch stops the gRPC server, and with it Serve, when no host wants the plugin any
// more. Without it a plugin that logs nothing would outlive a host that was killed,
// with its sessions and locks: go-plugin does not end it.
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

// closeSessions closes the sessions, once.
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

// logName is the name of a plugin's logger; its subsystems append theirs:
// "zkrecipes-plugin.session".
const logName = "zkrecipes-plugin"

// logger writes JSON to stderr, the one form that reaches the host's logger
// with its level. It keeps the real stderr: go-plugin replaces os.Stderr.
func logger() hclog.Logger {
	level := hclog.LevelFromString(os.Getenv(handshake.LogLevelEnv))
	if level == hclog.NoLevel {
		level = hclog.Info
	}
	return hclog.New(&hclog.LoggerOptions{Name: logName, Level: level, Output: os.Stderr, JSONFormat: true})
}

// About says what a plugin executable of that name is, and how it is used.
func About(name string) string {
	return fmt.Sprintf(`%s is a zkrecipes plugin: it gives a host application the ZooKeeper
recipes over gRPC. It does nothing by itself; a host launches it:

    p, err := host.Launch(ctx, host.Config{Path: %q})
    session, err := p.Open(ctx, recipes.SessionConfig{Servers: []string{"127.0.0.1:2181"}})

See https://pkg.go.dev/github.com/zkrecipes/zkrecipes/host
`, name, "/path/to/"+name)
}

// removeSocketDirectory removes the directory that a host made for the socket,
// which a host that was killed cannot do. It removes only what go-plugin names
// so, and only if it is empty.
func removeSocketDirectory() {
	dir := os.Getenv(goplugin.EnvUnixSocketDir)
	if strings.HasPrefix(filepath.Base(dir), "plugin-dir") {
		_ = os.Remove(dir)
	}
}
