package host

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/otel/metric"
	"google.golang.org/grpc"

	"github.com/zkrecipes/zkrecipes/internal/rpc/carry"
	"github.com/zkrecipes/zkrecipes/internal/rpc/client"
	"github.com/zkrecipes/zkrecipes/internal/rpc/link"
	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	"github.com/zkrecipes/zkrecipes/internal/telemetry"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// Plugin is a running plugin. Launch and InProcess return one. Its methods may be called
// from several goroutines.
type Plugin struct {
	service pb.PluginServiceClient
	client  *link.Client // nil if it outlives this plugin: other plugins can resume the sessions
	link    *link.Plugin
	can     []string // the plugin's capabilities, if another plugin can resume the sessions
	peer    peer

	attachCtx context.Context    // of the stream that keeps the plugin running
	detach    context.CancelFunc // cancels attachCtx
	attached  sync.WaitGroup
	exited    chan struct{} // closed when the peer has ended and cleanUp has returned
	closing   sync.Once
	ending    sync.WaitGroup // of Close
	shutdowns error
}

// peer is what a Plugin is connected to: a process that was launched, a process in a debugger
// or a server in this process. A process in a debugger ends, for these methods, when its
// connection ends.
type peer interface {
	// stop ends it, and returns when it has ended. That takes a bounded time. If ctx ends,
	// stop kills the process.
	stop(ctx context.Context)
	// disconnected ends it if only the connection to it has ended, and returns when it has
	// ended. That takes a bounded time. err is the error of the connection.
	disconnected(err error)
	// gone is closed when it has ended.
	gone() <-chan struct{}
	// cleanUp releases its resources after it has ended.
	cleanUp()
	// ending describes how it ended, for people.
	ending() string
	// pid is its process id, or 0.
	pid() int
}

// Bounds of the steps of Close, even if the plugin is frozen.
const (
	// shutdownTimeout bounds the closing of the sessions in ZooKeeper.
	shutdownTimeout = 3 * time.Second
	// killTimeout bounds go-plugin's Kill, which gives the plugin two seconds to exit, but
	// waits without a limit for its answer.
	killTimeout = 3 * time.Second
	// answerTimeout bounds the answer to a request that does not involve ZooKeeper. If the
	// plugin exceeds it, Close considers the plugin frozen and kills it.
	answerTimeout = time.Second
)

// leaveTimeout bounds how long the streams of a plugin are read after its exit. The streams
// end by themselves, so the timeout passes only if this process gets no processor time. Then
// the sessions are lost: the plugin may have reported a loss that was not read.
const leaveTimeout = 2 * time.Second

// newPlugin attaches to the plugin at the other end of conn. calls opens another connection
// to it, which carries only calls; it may be nil. If newPlugin fails, the caller must end the
// plugin.
func newPlugin(ctx context.Context, conn *grpc.ClientConn, calls carry.Dialer, o peer, measured metric.MeterProvider) (*Plugin, error) {
	c, err := newClient(measured)
	if err != nil {
		return nil, err
	}
	p := &Plugin{client: c, link: c.Connect(conn, calls, nil), peer: o}
	c.Use(p.link, false)
	return p, p.attach(ctx, conn)
}

// newClient returns a client whose sessions and grants are measured.
func newClient(measured metric.MeterProvider) (*link.Client, error) {
	meters, err := telemetry.NewMeters(measured)
	if err != nil {
		return nil, fmt.Errorf("host: Config.MeterProvider: %w", err)
	}
	c := client.Unconnected()
	c.Measure(meters)
	return c, nil
}

// attach opens the stream that keeps the plugin running.
func (p *Plugin) attach(ctx context.Context, conn *grpc.ClientConn) error {
	p.service, p.exited = pb.NewPluginServiceClient(conn), make(chan struct{})
	p.attachCtx, p.detach = context.WithCancel(context.Background())
	stop := context.AfterFunc(ctx, p.detach)
	st, err := p.service.Attach(p.attachCtx, &pb.AttachRequest{})
	if err == nil {
		_, err = st.Recv()
	}
	if err == nil && p.client == nil {
		var info *pb.InfoResponse
		info, err = p.service.Info(ctx, &pb.InfoRequest{})
		p.can = info.GetCapabilities()
	}
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		p.detach()
		p.link.Fail(err) // a shared client then drops it
		return err
	}
	p.attached.Go(func() {
		// Until detach, or the end of the plugin or of its connection.
		if _, err := st.Recv(); p.attachCtx.Err() == nil {
			p.peer.disconnected(err)
		}
	})
	go p.watch() // Exited waits for it
	return nil
}

// resumes reports whether the plugin has the capability "resume". Sessions can move between
// two plugins that have it.
func (p *Plugin) resumes() bool { return slices.Contains(p.can, "resume") }

// watch waits for the end of the plugin, for whatever reason. It then ends or suspends the
// sessions, and cleans up.
func (p *Plugin) watch() {
	<-p.peer.gone()
	if p.client == nil {
		ctx, cancel := context.WithTimeout(context.Background(), leaveTimeout)
		p.link.ProcessEnded(ctx)
		cancel()
	} else {
		p.client.Fail(fmt.Errorf("%w: %s", recipes.ErrPluginLost, p.peer.ending()))
	}
	p.detach()
	p.attached.Wait()
	if p.client != nil {
		p.client.Close()
	}
	p.peer.cleanUp()
	close(p.exited)
}

// Open opens a session through the plugin. It is a recipes.Opener. If the plugin has exited,
// the error matches recipes.ErrPluginLost and recipes.ErrUnavailable, and the caller has to
// launch another plugin.
func (p *Plugin) Open(ctx context.Context, cfg recipes.SessionConfig) (recipes.Client, error) {
	return p.link.Open(ctx, cfg)
}

var errClosedByHost = fmt.Errorf("%w: the host has closed the plugin", recipes.ErrClosed)

// Exited returns a channel that is closed when the plugin has ended, by Close or by itself,
// and no process, socket or goroutine of it is left.
func (p *Plugin) Exited() <-chan struct{} { return p.exited }

// PID returns the plugin's process id, or 0 for InProcess.
func (p *Plugin) PID() int { return p.peer.pid() }

// Version requests the plugin's version.
func (p *Plugin) Version(ctx context.Context) (string, error) {
	info, err := p.Info(ctx)
	return info.Version, err
}

// Info describes a plugin.
type Info struct {
	// Version is the version of the plugin's build, for people.
	Version string
	// Capabilities lists everything that the plugin can do, such as "lock" and
	// "election". Later versions can add names, and never change one.
	Capabilities []string
	// Build identifies the build. Programs of zkrecipes that were built together have the
	// same Build, even if their version is "(devel)". "" means unknown.
	Build string
}

// Info requests the plugin's description of itself.
func (p *Plugin) Info(ctx context.Context) (Info, error) {
	r, err := p.service.Info(ctx, &pb.InfoRequest{})
	if err != nil {
		return Info{}, fmt.Errorf("host: read the plugin's version and capabilities: %w", err)
	}
	return Info{Version: r.GetVersion(), Capabilities: r.GetCapabilities(), Build: r.GetBuild()}, nil
}

// Close closes the open sessions, in ZooKeeper too, and ends the plugin. It requests a
// shutdown, then an exit, and then kills the process. Each step is bounded, by ctx too, so
// Close returns even if the plugin is frozen.
//
// It returns nil if the sessions were closed in ZooKeeper, or if there were none. It also
// returns nil if the plugin had exited before: its sessions are lost already, with
// recipes.ErrPluginLost. On an error the plugin has ended too, but some sessions can last
// until their timeout, because the plugin or ZooKeeper has not answered. Further calls wait
// for the first one and return its result.
//
// A plugin in a debugger keeps running. It closes the sessions when it notices that the
// connection has ended, and Close does not wait for that.
func (p *Plugin) Close(ctx context.Context) error {
	p.closing.Do(func() {
		// This host's sessions end before ZooKeeper can grant to other clients what
		// they hold. The plugin closes them when their streams end.
		p.link.Fail(errClosedByHost)
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		p.ending.Go(func() { p.cancelIfFrozen(ctx, cancel) })
		p.shutdowns = p.shutdown(ctx)
		p.peer.stop(ctx)
		cancel()
		p.ending.Wait()
	})
	<-p.exited
	return p.shutdowns
}

// cancelIfFrozen calls cancel if the plugin does not answer, so that neither shutdown nor
// stop waits for it.
func (p *Plugin) cancelIfFrozen(ctx context.Context, cancel context.CancelFunc) {
	answer, stop := context.WithTimeout(ctx, answerTimeout)
	defer stop()
	if _, err := p.service.Info(answer, &pb.InfoRequest{}); err != nil && answer.Err() != nil {
		cancel()
	}
}

// shutdown requests that the plugin close its sessions, and waits for the answer.
func (p *Plugin) shutdown(ctx context.Context) error {
	select {
	case <-p.peer.gone():
		return nil
	default:
	}
	if _, ok := p.peer.(*attached); ok {
		return nil // other hosts may use it; it closes this host's sessions when their streams end
	}
	ctx, cancel := context.WithTimeout(ctx, shutdownTimeout)
	defer cancel()
	if _, err := p.service.Shutdown(ctx, &pb.ShutdownRequest{}); err != nil {
		err, _ = wire.Error(err)
		return fmt.Errorf("host: the plugin has not confirmed its shutdown; sessions may last until their timeout: %w", err)
	}
	return nil
}
