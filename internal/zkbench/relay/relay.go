// Package relay stands between sessions and their servers, and copies bytes. In
// this process it can cut a session off as if its machine had died: nothing is
// closed in an orderly way, and nothing gets through any more. In a process of
// its own it shows what a second process costs that does nothing.
//
// With a [Delay] it shows what a network costs that is further away.
//
// It costs a hop over loopback, so that nothing else is measured through it.
package relay

import (
	"context"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// Relay forwards connections to the first server that can be reached. All
// methods may be called from several goroutines.
type Relay struct {
	listener net.Listener
	servers  []string
	delay    *Delay          // nil: none
	ctx      context.Context // ends with the first Cut
	stop     context.CancelFunc
	wait     sync.WaitGroup

	mu    sync.Mutex
	conns map[net.Conn]struct{}
	cut   bool
}

// Listen returns a relay to servers, given as host:port, on a loopback port. delay is nil
// for none.
func Listen(servers []string, delay *Delay) (*Relay, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("relay: %w", err)
	}
	r := &Relay{listener: listener, servers: servers, delay: delay, conns: map[net.Conn]struct{}{}}
	r.ctx, r.stop = context.WithCancel(context.Background())
	r.wait.Go(r.accept)
	return r, nil
}

// Through returns the configuration of a session that reaches its servers by
// relays at those addresses, given as host:port.
func Through(cfg recipes.SessionConfig, addrs ...string) recipes.SessionConfig {
	if cfg.TLS != nil && cfg.TLS.ServerName == "" {
		// The relay's address is in nobody's certificate.
		tls := *cfg.TLS
		tls.ServerName, _, _ = net.SplitHostPort(cfg.Servers[0])
		cfg.TLS = &tls
	}
	cfg.Servers = addrs
	return cfg
}

// Addr is where the relay listens, as host:port.
func (r *Relay) Addr() string { return r.listener.Addr().String() }

// Cut breaks all connections and refuses new ones, for good. It returns when
// nothing passes any more, and may be called again.
func (r *Relay) Cut() {
	r.mu.Lock()
	r.cut = true
	r.stop()
	r.listener.Close()
	for conn := range r.conns {
		conn.Close()
	}
	r.mu.Unlock()
	r.wait.Wait()
}

func (r *Relay) accept() {
	for {
		client, err := r.listener.Accept()
		if err != nil {
			return
		}
		r.wait.Go(func() { r.forward(client) })
	}
}

// forward copies both ways until one of the ends closes.
func (r *Relay) forward(client net.Conn) {
	defer client.Close()
	server := r.dial()
	if server == nil {
		return
	}
	defer server.Close()
	if !r.add(client, server) {
		return
	}
	defer r.remove(client, server)
	var both sync.WaitGroup
	pipe := plainPipe
	if r.delay != nil {
		pipe = r.delay.pipe
	}
	both.Go(func() { pipe(server, client) })
	both.Go(func() { pipe(client, server) })
	both.Wait()
}

// plainPipe copies until the source ends, and then ends the other way too.
func plainPipe(to, from net.Conn) {
	_, _ = io.Copy(to, from)
	to.Close()
	from.Close()
}

// dialTimeout is for how long a server may not answer before the next is tried: a
// session gives an attempt two seconds (recipes.DefaultConnectTimeout), and knows of
// one server only.
const dialTimeout = 500 * time.Millisecond

func (r *Relay) dial() net.Conn {
	dialer := net.Dialer{Timeout: dialTimeout}
	for _, server := range r.servers {
		if conn, err := dialer.DialContext(r.ctx, "tcp", server); err == nil {
			return conn
		}
	}
	return nil
}

// add notes connections for Cut, unless it has been called.
func (r *Relay) add(conns ...net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cut {
		return false
	}
	for _, conn := range conns {
		r.conns[conn] = struct{}{}
	}
	return true
}

func (r *Relay) remove(conns ...net.Conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, conn := range conns {
		delete(r.conns, conn)
	}
}
