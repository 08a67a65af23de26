package simulation

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	rpc "github.com/zkrecipes/zkrecipes/internal/rpc/client"
	"github.com/zkrecipes/zkrecipes/internal/rpc/link"
	"github.com/zkrecipes/zkrecipes/internal/rpc/server"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// openThroughPlugin opens a session through the plugin's server and the host's client. A hop in
// memory connects the two. Each session has its own plugin.
func openThroughPlugin(ctx context.Context, h *host) (recipes.Client, error) {
	hop := &hop{host: h, arriving: make(chan net.Conn), closed: make(chan struct{})}
	plugin := server.New(server.Config{Open: zookeeper.Dialer(h.Dial).Open})
	g := grpc.NewServer(append(plugin.Options(), grpc.WaitForHandlers(true))...)
	plugin.Register(g)
	var serving sync.WaitGroup
	serving.Go(func() { _ = g.Serve(hop) })
	conn, err := grpc.NewClient("passthrough:///plugin", append(link.DialOptions(nil, nil),
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithContextDialer(hop.dial))...)
	if err != nil {
		return nil, err
	}
	calls := rpc.New(conn, nil)
	over := func() {
		calls.Close()
		_ = conn.Close()
		g.Stop()
		serving.Wait()
		_ = plugin.Close(context.Background())
	}
	s, err := calls.Open(ctx, sessionConfig)
	if err != nil {
		over()
		return nil, err
	}
	return pluginSession{s, over}, nil
}

// pluginSession ends its plugin when it is closed.
type pluginSession struct {
	recipes.Client
	over func()
}

func (s pluginSession) Close(ctx context.Context) error {
	defer s.over()
	return s.Client.Close(ctx)
}

// hop connects an application and its plugin. It is the listener of the plugin.
type hop struct {
	host     *host
	arriving chan net.Conn
	closed   chan struct{}
	once     sync.Once
}

func (p *hop) dial(ctx context.Context, _ string) (net.Conn, error) {
	near, far := p.host.hop()
	select {
	case p.arriving <- far:
		return near, nil
	case <-p.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (p *hop) Accept() (net.Conn, error) {
	select {
	case c := <-p.arriving:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *hop) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

func (p *hop) Addr() net.Addr { return address{} }

// hop makes a connection to a plugin on the host.
func (h *host) hop() (near, far *conn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.hopped++
	s := newStream(h.world.seed, fmt.Sprintf("%s hop %d", h.name, h.hopped))
	delay := func() time.Duration { return s.between(10*time.Microsecond, 300*time.Microsecond) }
	near, far = newConns(delay, delay)
	near.gone = func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.hops, near)
	}
	h.hops[near] = struct{}{}
	return near, far
}

// stallHop delays all messages between application and plugin for d, as if one of the two were
// paused.
func (h *host) stallHop(d time.Duration) {
	until := time.Now().Add(d)
	h.mu.Lock()
	defer h.mu.Unlock()
	for c := range h.hops {
		c.in.stall(until)
		c.out.stall(until)
	}
}

// resetHop ends the connection. The application must notice it first, as on one machine, because
// the plugin releases all that its application holds as soon as it notices.
func (h *host) resetHop() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for c := range h.hops {
		c.in.discard(0)
		c.out.discard(time.Millisecond)
	}
}
