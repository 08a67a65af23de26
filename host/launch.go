package host

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	goplugin "github.com/hashicorp/go-plugin"
	"github.com/hashicorp/go-plugin/runner"
	"google.golang.org/grpc"

	"github.com/zkrecipes/zkrecipes/internal/rpc/carry"
	"github.com/zkrecipes/zkrecipes/internal/rpc/client"
	"github.com/zkrecipes/zkrecipes/internal/rpc/handshake"
	"github.com/zkrecipes/zkrecipes/internal/rpc/telemetry"
	"github.com/zkrecipes/zkrecipes/internal/version"
)

// Launch starts a plugin and returns when it can open sessions. ctx bounds the start
// only. If it ends first, or the start fails, no process and no file is left. The
// error has the last lines that the plugin wrote on stderr.
//
// If the environment variable ZKRECIPES_PLUGIN_REATTACH is set, Launch starts nothing. It
// uses the plugin that the variable names, which runs in a debugger. Of cfg only
// Logger and StartTimeout matter then, and Close leaves that plugin running. With a
// Checksum the error is ErrReattach.
//
// A Plugin is one process, and its sessions end with it at the latest. To have them go on in
// the next process, use Supervise.
func Launch(ctx context.Context, cfg Config) (*Plugin, error) { return launchFor(ctx, cfg, nil) }

// debugged reports whether Launch starts nothing. Nobody can wait for that plugin's process,
// so that its sessions cannot outlive it.
func debugged() bool { return os.Getenv(handshake.ReattachEnv) != "" }

// unconnected returns a client of several plugins, one after the other.
func (c Config) unconnected() (*client.Client, error) {
	meters, err := telemetry.NewMeters(c.MeterProvider)
	if err != nil {
		return nil, fmt.Errorf("host: Config.MeterProvider: %w", err)
	}
	several := client.Unconnected()
	several.Measure(meters)
	return several, nil
}

// launchFor is Launch for a client that goes on with another plugin after this one. nil is
// a client of the plugin's own.
func launchFor(ctx context.Context, cfg Config, c *client.Client) (*Plugin, error) {
	if p, err := reattach(ctx, cfg); p != nil || err != nil {
		return p, err
	}
	cfg, chosen, err := cfg.normalize()
	if err != nil {
		return nil, err
	}
	ours := chosen && onlyOurs(cfg.Path)
	switch {
	case cfg.Checksum != "":
		if err := verify(cfg.Path, cfg.Checksum); err != nil {
			return nil, fmt.Errorf("host: %w", err)
		}
	case !ours:
		cfg.Logger.Warn("plugin starts without a checksum: set one, so that no other program can take its place; zkrecipes init writes a configuration with it",
			"path", cfg.Path)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, cfg.StartTimeout, errStartTimeout)
	defer cancel()
	l := newLaunched(cfg)
	conn, err := l.start(ctx)
	if err == nil {
		var p *Plugin
		if p, err = l.attach(ctx, conn, c); err == nil {
			if cfg.Checksum == "" && ours {
				cfg.compareBuilds(ctx, p)
			}
			return p, nil
		}
	}
	l.discard()
	return nil, l.startError(ctx, err)
}

func (l *launched) attach(ctx context.Context, conn *grpc.ClientConn, c *client.Client) (*Plugin, error) {
	if c == nil {
		return newPlugin(ctx, conn, l.dialCalls, l, l.cfg.MeterProvider)
	}
	return newShared(ctx, conn, c, l)
}

// compareBuilds warns if the plugin is of another build than this program. It asks the
// plugin, because no other user can write to its executable.
func (c Config) compareBuilds(ctx context.Context, p *Plugin) {
	theirs, err := p.Info(ctx)
	if err != nil || !version.SameBuild(theirs.Version, theirs.Build) {
		c.Logger.Warn("plugin starts without a checksum, and is of another build than this program: install both of one build, or set a checksum; zkrecipes init writes a configuration with it",
			"path", c.Path, "plugin", theirs.Version, "program", version.Module())
	}
}

// errStartTimeout is the cause when Config.StartTimeout ends the start, and not the
// caller's context.
var errStartTimeout = errors.New("the start has taken too long")

// launched is a plugin process and go-plugin's client of it.
type launched struct {
	cfg     Config
	begun   time.Time
	client  *goplugin.Client
	secured *tls.Config   // go-plugin adds the plugin's certificate
	env     string        // of the plugin, beside what go-plugin adds
	started chan struct{} // closed when start's work has ended

	mu        sync.Mutex
	aborted   bool // kill came first
	process   *process
	socketDir string // made by go-plugin

	killing sync.Once
	killed  chan struct{} // closed when go-plugin's Kill has returned
}

func newLaunched(cfg Config) *launched {
	return &launched{cfg: cfg, begun: time.Now(), started: make(chan struct{}), killed: make(chan struct{})}
}

// start does go-plugin's handshake. go-plugin's Start and Client take no context;
// only the end of the process ends them early.
func (l *launched) start(ctx context.Context) (*grpc.ClientConn, error) {
	base, err := socketBase()
	if err != nil {
		close(l.started)
		return nil, err
	}
	secured, env, err := mutualTLS()
	if err != nil {
		close(l.started)
		return nil, err
	}
	l.env, l.secured = env, secured
	l.client = goplugin.NewClient(&goplugin.ClientConfig{
		HandshakeConfig:     handshake.Config(),
		VersionedPlugins:    handshake.Host(),
		RunnerFunc:          l.run,
		AllowedProtocols:    []goplugin.Protocol{goplugin.ProtocolGRPC},
		TLSConfig:           secured,
		GRPCDialOptions:     l.cfg.dialOptions(),
		SkipHostEnv:         true,
		StartTimeout:        l.cfg.StartTimeout,
		Logger:              l.cfg.Logger,
		PluginLogBufferSize: logBuffer,
		UnixSocketConfig:    &goplugin.UnixSocketConfig{TempDir: base},
	})
	var conn *grpc.ClientConn
	go func() { // ends with the process, at the latest, and discard waits for it
		defer close(l.started)
		conn, err = l.dispense()
	}()
	select {
	case <-l.started:
		return conn, err
	case <-ctx.Done():
		l.kill()
		<-l.started
		return nil, ctx.Err()
	}
}

func (l *launched) dispense() (*grpc.ClientConn, error) {
	if _, err := l.client.Start(); err != nil {
		return nil, err
	}
	protocol, err := l.client.Client()
	if err != nil {
		return nil, err
	}
	raw, err := protocol.Dispense(handshake.Name)
	if err != nil {
		return nil, err
	}
	return raw.(*grpc.ClientConn), nil
}

// dialCalls opens a connection for calls alone.
func (l *launched) dialCalls(ctx context.Context) (net.Conn, error) {
	at := l.client.ReattachConfig().Addr // known since the start
	raw, err := new(net.Dialer).DialContext(ctx, at.Network(), at.String())
	if err != nil {
		return nil, err
	}
	cfg := l.secured.Clone()
	cfg.NextProtos = []string{carry.Protocol}
	conn := tls.Client(raw, cfg)
	if err := conn.HandshakeContext(ctx); err != nil {
		_ = raw.Close()
		return nil, err
	}
	if got := conn.ConnectionState().NegotiatedProtocol; got != carry.Protocol {
		_ = raw.Close()
		return nil, fmt.Errorf("the plugin speaks %q there", got)
	}
	return carry.Abrupt(conn, raw), nil
}

// run is go-plugin's RunnerFunc. cmd has the environment that go-plugin wants.
func (l *launched) run(_ hclog.Logger, cmd *exec.Cmd, socketDir string) (runner.Runner, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.socketDir = socketDir
	if l.aborted {
		return nil, errKilled
	}
	l.process = newProcess(l.cfg, append(cmd.Env, l.env))
	return l.process, nil
}

func (l *launched) proc() *process {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.process
}

// kill kills the process, or prevents its start.
func (l *launched) kill() {
	l.mu.Lock()
	l.aborted = true
	p := l.process
	l.mu.Unlock()
	if p != nil {
		_ = p.Kill(context.Background())
	}
}

// gentleKill has go-plugin end the plugin, in the background. With a frozen plugin
// that takes for ever.
func (l *launched) gentleKill() {
	l.killing.Do(func() {
		go func() { // ends with the process, and cleanUp waits for it
			defer close(l.killed)
			l.client.Kill()
		}()
	})
}

func (l *launched) stop(ctx context.Context) {
	l.gentleKill()
	ctx, cancel := context.WithTimeout(ctx, killTimeout)
	defer cancel()
	select {
	case <-l.gone():
	case <-ctx.Done():
		l.kill()
		<-l.gone()
	}
}

func (l *launched) gone() <-chan struct{} { return l.proc().exited }

// cleanUp closes the connection and removes the socket's directory. go-plugin's Kill
// closes the connection; the process has exited already.
func (l *launched) cleanUp() {
	l.gentleKill()
	<-l.killed
	l.proc().finish()
	l.removeSocketDir()
}

func (l *launched) removeSocketDir() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.socketDir != "" {
		_ = os.RemoveAll(l.socketDir)
	}
}

// discard removes what a failed start has left.
func (l *launched) discard() {
	defer l.removeSocketDir()
	p := l.proc()
	if p == nil || p.pid() == 0 {
		return
	}
	l.kill()
	<-p.exited
	l.gentleKill()
	<-l.killed
	p.finish()
}

// died reports whether the process has died by a signal or a crash, now that the stream of
// a session has ended. It waits for the process to be reaped. A process that runs without
// the stream may be closing the session.
func (l *launched) died(ctx context.Context) bool {
	p := l.proc()
	if !p.isExiting() {
		return false
	}
	select {
	case <-p.exited:
		return p.cmd.ProcessState.ExitCode() != 0
	case <-ctx.Done():
		return false
	}
}

func (l *launched) ending() string {
	p := l.proc()
	return fmt.Sprintf("plugin %s (pid %s): %s", l.cfg.Path, p.ID(), p.state())
}

func (l *launched) pid() int { return l.proc().pid() }

// startError says what was tried, what happened, and what the plugin said.
func (l *launched) startError(ctx context.Context, err error) error {
	switch {
	case ctx.Err() == nil:
	case errors.Is(context.Cause(ctx), errStartTimeout):
		err = fmt.Errorf("it was not ready in time (StartTimeout is %v): %w", l.cfg.StartTimeout, ctx.Err())
	default:
		err = fmt.Errorf("the caller's context ended after %v: %w", time.Since(l.begun).Round(time.Millisecond), ctx.Err())
	}
	msg := "its stderr was empty"
	if p := l.proc(); p != nil {
		if v, ok := p.said.version(); ok && !speaks(v) {
			err = fmt.Errorf("%w: it speaks protocol %d, this host %d: %w", ErrVersion, v, handshake.Version, err)
		}
		if s := p.tail.String(); s != "" {
			msg = "its stderr ended with:\n\t" + strings.ReplaceAll(s, "\n", "\n\t")
		}
	}
	return fmt.Errorf("host: plugin %s did not start: %w; %s", l.cfg.Path, err, msg)
}
