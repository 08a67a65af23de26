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
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	goplugin "github.com/hashicorp/go-plugin"
	"github.com/hashicorp/go-plugin/runner"
	"google.golang.org/grpc"

	"github.com/zkrecipes/zkrecipes/internal/rpc/carry"
	"github.com/zkrecipes/zkrecipes/internal/rpc/handshake"
	"github.com/zkrecipes/zkrecipes/internal/rpc/link"
	"github.com/zkrecipes/zkrecipes/internal/version"
)

// Launch starts a plugin and returns when it can open sessions. ctx bounds only the start.
// If the start fails or ctx ends first, no process and no file is left behind. The error
// contains the last lines of the plugin's stderr.
//
// If the environment variable ZKRECIPES_PLUGIN_REATTACH is set, Launch starts nothing. It
// uses the plugin that the variable names, which runs in a debugger. It then ignores all
// of cfg but Logger, StartTimeout and the telemetry providers. With a Checksum the error is
// ErrReattach. Close leaves that plugin running.
//
// A Plugin is one process. Its sessions end with it at the latest. To have another process
// resume them, use Supervise.
func Launch(ctx context.Context, cfg Config) (*Plugin, error) { return launchFor(ctx, cfg, nil) }

// debugged reports whether Launch uses a running plugin. This process cannot wait for its
// exit, so its sessions cannot be resumed.
func debugged() bool { return os.Getenv(handshake.ReattachEnv) != "" }

// launchFor does what Launch does, for a client that several plugins share, one after the
// other. If c is nil, the plugin gets its own client.
func launchFor(ctx context.Context, cfg Config, c *link.Client) (*Plugin, error) {
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

func (l *launched) attach(ctx context.Context, conn *grpc.ClientConn, c *link.Client) (*Plugin, error) {
	if c == nil {
		return newPlugin(ctx, conn, l.dialCalls, l, l.cfg.MeterProvider)
	}
	p := &Plugin{link: c.Connect(conn, l.dialCalls, l.died), peer: l} // the plugin opens sessions once c.Use was called
	return p, p.attach(ctx, conn)
}

// compareBuilds warns if the plugin and this program are of different builds. It relies on
// what the plugin reports, because no other user can write to its executable.
func (c Config) compareBuilds(ctx context.Context, p *Plugin) {
	theirs, err := p.Info(ctx)
	if err != nil || !version.SameBuild(theirs.Version, theirs.Build) {
		c.Logger.Warn("plugin starts without a checksum, and is of another build than this program: install both of one build, or set a checksum; zkrecipes init writes a configuration with it",
			"path", c.Path, "plugin", theirs.Version, "program", version.Module())
	}
}

// errStartTimeout is the context's cause when Config.StartTimeout has passed. It
// distinguishes that from the end of the caller's context.
var errStartTimeout = errors.New("the start has taken too long")

type launched struct {
	cfg     Config
	begun   time.Time
	client  *goplugin.Client
	secured *tls.Config // go-plugin adds the plugin's certificate
	env     string      // a variable for the plugin, in addition to go-plugin's

	mu        sync.Mutex
	aborted   bool // kill was called before run
	process   *process
	socketDir string // created by go-plugin
	dirLock   *os.File
	cutOff    error // why the connection to the running process ended; nil if it has not

	killing sync.Once
	killed  chan struct{} // closed when go-plugin's Kill has returned
}

func newLaunched(cfg Config) *launched {
	return &launched{cfg: cfg, begun: time.Now(), killed: make(chan struct{})}
}

// start starts the process and does go-plugin's handshake. go-plugin's Start and Client take
// no context; only the exit of the process ends them early.
func (l *launched) start(ctx context.Context) (*grpc.ClientConn, error) {
	base, err := socketBase()
	if err != nil {
		return nil, err
	}
	removeAbandoned(base)
	if l.secured, l.env, err = mutualTLS(); err != nil {
		return nil, err
	}
	l.client = goplugin.NewClient(&goplugin.ClientConfig{
		HandshakeConfig:     handshake.Config(),
		VersionedPlugins:    handshake.Host(),
		RunnerFunc:          l.run,
		AllowedProtocols:    []goplugin.Protocol{goplugin.ProtocolGRPC},
		TLSConfig:           l.secured,
		GRPCDialOptions:     l.cfg.dialOptions(),
		SkipHostEnv:         true,
		StartTimeout:        l.cfg.StartTimeout,
		Logger:              logger{l.cfg.Logger, l},
		PluginLogBufferSize: logBuffer,
		UnixSocketConfig:    &goplugin.UnixSocketConfig{TempDir: base},
	})
	var conn *grpc.ClientConn
	started := make(chan struct{})
	go func() { // ends at the latest when the process exits; start waits for it
		defer close(started)
		conn, err = l.dispense()
	}()
	select {
	case <-started:
		return conn, err
	case <-ctx.Done():
		l.kill()
		<-started
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

func (l *launched) dialCalls(ctx context.Context) (net.Conn, error) {
	at := l.client.ReattachConfig().Addr // set by go-plugin's Start
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
		return nil, fmt.Errorf("the plugin negotiated the protocol %q instead of %q", got, carry.Protocol)
	}
	return carry.Abrupt(conn, raw), nil
}

// run is go-plugin's RunnerFunc. cmd.Env has go-plugin's variables.
func (l *launched) run(_ hclog.Logger, cmd *exec.Cmd, socketDir string) (runner.Runner, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.socketDir, l.dirLock = socketDir, lockDirectory(socketDir)
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

// kill kills the process. If run was not called yet, the process will not start.
func (l *launched) kill() {
	l.mu.Lock()
	l.aborted = true
	p := l.process
	l.mu.Unlock()
	if p != nil {
		_ = p.Kill(context.Background())
	}
}

// gentleKill calls go-plugin's Kill in the background. Kill requests an exit. If the plugin
// is frozen, Kill does not return before another caller has killed the process.
func (l *launched) gentleKill() {
	l.killing.Do(func() {
		go func() { // ends when the process has exited; cleanUp and discard wait for it
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

// disconnected ends a process that has no connection any more. The process cannot be dialled
// again if its socket was deleted, and its sessions ended with their streams. Without a
// Config.Lifetime it exits by itself. With one it would keep the sessions in ZooKeeper, and
// no caller could reach it. SIGTERM makes it close them.
func (l *launched) disconnected(err error) {
	p := l.proc()
	if p.isExiting() {
		return
	}
	err = fmt.Errorf("its connection ended: %w", err)
	if at := l.client.ReattachConfig().Addr; at.Network() == "unix" {
		if _, missing := os.Stat(at.String()); missing != nil {
			err = fmt.Errorf("%w, and cannot be replaced, because its socket is missing: %w", err, missing)
		}
	}
	l.mu.Lock()
	l.cutOff = err // before the signal: see died
	l.mu.Unlock()
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // on Windows the process exits by itself
	late := time.NewTimer(killTimeout)
	defer late.Stop()
	select {
	case <-p.exited:
	case <-late.C:
		l.kill()
		<-p.exited
	}
}

// wasCutOff returns why the connection had ended while the process ran, or nil.
func (l *launched) wasCutOff() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cutOff
}

func (l *launched) gone() <-chan struct{} { return l.proc().exited }

// cleanUp closes the connection and removes the socket's directory. The process has exited,
// so go-plugin's Kill only closes the connection.
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
		_ = l.dirLock.Close() // works even if it is nil
	}
}

// discard cleans up after a failed start.
func (l *launched) discard() {
	p := l.proc()
	if p == nil || p.pid() == 0 {
		l.removeSocketDir()
		return
	}
	l.kill()
	<-p.exited
	l.cleanUp()
}

// died reports whether a signal or a crash ended the process, so that another plugin can
// resume its sessions. It is called when the stream of a session has ended, and waits until
// an exiting process was reaped. It returns false for a process that runs or that has exited
// with code 0, because that process may have closed the session. A process whose connection ended
// before the process did may also have closed it.
func (l *launched) died(ctx context.Context) bool {
	p := l.proc()
	if !p.isExiting() {
		return false
	}
	select {
	case <-p.exited:
		return p.cmd.ProcessState.ExitCode() != 0 && l.wasCutOff() == nil
	case <-ctx.Done():
		return false
	}
}

func (l *launched) ending() string {
	p := l.proc()
	text := fmt.Sprintf("plugin %s (pid %s): %s", l.cfg.Path, p.ID(), p.cmd.ProcessState)
	if err := l.wasCutOff(); err != nil {
		text += fmt.Sprintf("; before that, %v", err)
	}
	return text
}

func (l *launched) pid() int { return l.proc().pid() }

// startError returns err with the plugin's path, the reason and the end of its stderr.
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
		if v, ok := p.said.version(); ok && !supported(v) {
			err = fmt.Errorf("%w: it has protocol version %d, this host %d: %w", ErrVersion, v, handshake.Version, err)
		}
		if s := p.tail.String(); s != "" {
			msg = "its stderr ended with:\n\t" + strings.ReplaceAll(s, "\n", "\n\t")
		}
	}
	return fmt.Errorf("host: plugin %s did not start: %w; %s", l.cfg.Path, err, msg)
}
