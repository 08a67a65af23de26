// Package supervised is a host and its plugins in one process. A test can kill the plugin at any
// request, or replace it. The next plugin then resumes the sessions, as after a crash or an upgrade
// under a host.Supervisor.
//
// The client, the server and the recipes are those of the product; only the processes are missing.
// It runs in real time and in a bubble of testing/synctest.
package supervised

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/zkrecipes/zkrecipes/internal/rpc/client"
	"github.com/zkrecipes/zkrecipes/internal/rpc/link"
	"github.com/zkrecipes/zkrecipes/internal/rpc/server"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// Host opens sessions through one plugin at a time. Its methods may be called from several
// goroutines.
type Host struct {
	dial   zookeeper.Dialer
	client *link.Client

	mu      sync.Mutex
	current *plugin // nil while none runs
	closed  bool
	dying   sync.WaitGroup // plugins that were killed; mu protects Add
}

// New launches the first plugin. Each plugin connects to the servers by dial.
func New(dial zookeeper.Dialer) *Host {
	h := &Host{dial: dial, client: client.Unconnected()}
	h.current = h.launch()
	return h
}

// Open is a recipes.Opener. The session survives its plugins.
func (h *Host) Open(ctx context.Context, cfg recipes.SessionConfig) (recipes.Client, error) {
	return h.client.Open(ctx, cfg)
}

// Kill kills the plugin. When Kill returns, the plugin sends nothing more, and nothing reaches it.
// Once it has ended, the next plugin resumes its sessions. Kill does nothing while no plugin runs.
func (h *Host) Kill() {
	h.mu.Lock()
	defer h.mu.Unlock()
	p := h.current
	if p == nil || h.closed {
		return
	}
	h.current = nil
	p.cutOff()
	h.dying.Go(func() { h.succeed(p) })
}

// Replace starts the replacement of the plugin, as Supervisor.Upgrade does: calls wait, the plugin
// detaches its sessions and ends, and the next one resumes them. Replace does nothing while no plugin
// runs. Kill does nothing until the next one runs.
func (h *Host) Replace(patience time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	p := h.current
	if p == nil || h.closed {
		return
	}
	h.current = nil
	h.dying.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		p.link.Pause(ctx, patience)
		if all, _ := p.link.DetachSessions(ctx); all {
			_ = p.server.Close(ctx) // like a plugin that gets SIGTERM
		}
		h.succeed(p)
	})
}

// succeed ends the process, and launches the next one.
func (h *Host) succeed(p *plugin) {
	p.end()
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.closed {
		h.current = h.launch()
	}
	h.dying.Go(p.forget)
}

// Close ends the sessions and the plugin, and waits for both.
func (h *Host) Close() {
	h.mu.Lock()
	h.closed = true
	p := h.current
	h.mu.Unlock()
	h.client.Close()
	h.dying.Wait()
	if p != nil {
		p.end()
		p.forget()
	}
}

// plugin is what a plugin process consists of.
type plugin struct {
	zookeeper zookeeper.Dialer
	server    *server.Server
	grpc      *grpc.Server
	listener  *bufconn.Listener
	conn      *grpc.ClientConn
	link      *link.Plugin // the host's end
	serving   sync.WaitGroup
	ended     chan struct{}

	mu    sync.Mutex
	dead  bool
	conns []net.Conn // of the process
}

var errKilled = errors.New("the plugin was killed")

// launch starts a plugin that serves new sessions, and those of the last one.
func (h *Host) launch() *plugin {
	p := &plugin{zookeeper: h.dial, listener: bufconn.Listen(1 << 16), ended: make(chan struct{})}
	dial := zookeeper.Dialer(p.dialServer)
	p.server = server.New(server.Config{Open: dial.Open, Resume: dial.Resume})
	p.grpc = grpc.NewServer(append(p.server.Options(), grpc.WaitForHandlers(true))...)
	p.server.Register(p.grpc)
	p.serving.Go(func() { _ = p.grpc.Serve(p.listener) })
	conn, err := grpc.NewClient("passthrough:///plugin", append(link.DialOptions(nil, nil),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return p.owns(p.listener.DialContext(ctx))
		}))...)
	if err != nil {
		panic(err) // the options are wrong
	}
	p.conn = conn
	p.link = h.client.Connect(conn, p.dialCalls, p.died)
	h.client.Use(p.link, true)
	return p
}

// owns closes the connection when the process ends.
func (p *plugin) owns(c net.Conn, err error) (net.Conn, error) {
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dead {
		_ = c.Close()
		return nil, errKilled
	}
	p.conns = append(p.conns, c)
	return c, nil
}

func (p *plugin) dialServer(ctx context.Context, network, address string) (net.Conn, error) {
	p.mu.Lock()
	dead := p.dead
	p.mu.Unlock()
	if dead {
		return nil, errKilled
	}
	return p.owns(p.zookeeper(ctx, network, address))
}

// dialCalls opens a connection for calls alone.
func (p *plugin) dialCalls(context.Context) (net.Conn, error) {
	l := bufconn.Listen(1 << 16)
	var far net.Conn
	var accepted sync.WaitGroup
	accepted.Go(func() { far, _ = l.Accept() })
	near, err := l.Dial()
	accepted.Wait()
	if near, err = p.owns(near, err); err != nil {
		return nil, err
	}
	p.serving.Go(func() { p.server.ServeCalls(context.Background(), far) })
	return near, nil
}

func (p *plugin) cutOff() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dead = true
	for _, c := range p.conns {
		_ = c.Close()
	}
}

// end ends what is left of the process. It can no longer close its sessions.
func (p *plugin) end() {
	p.cutOff()
	p.grpc.Stop()
	over, cancel := context.WithCancel(context.Background())
	cancel()
	_ = p.server.Close(over)
	p.serving.Wait()
	close(p.ended)
}

// forget makes the host forget the process.
func (p *plugin) forget() {
	p.link.ProcessEnded(context.Background())
	_ = p.conn.Close()
}

// died implements the argument of client.Connect.
func (p *plugin) died(ctx context.Context) bool {
	select {
	case <-p.ended:
		return true
	case <-ctx.Done():
		return false
	}
}
