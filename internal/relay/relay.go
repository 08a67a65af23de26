// Package relay copies bytes between sessions and their servers. In the process of a test,
// it cuts a session off as if its machine had died: nothing is closed in an orderly way,
// and no bytes pass any more. In a process of its own, it shows the costs of a second
// process that does nothing else.
//
// With a [Delay] it shows the costs of a more distant network.
//
// A relay adds a hop over loopback, so no other measurements use it.
//
// The contract tests break the connections of one session with it. They run on real
// servers too, so they cannot use the faults of the in-process server. And a server that
// only holds a reply back still sees that its client is alive.
package relay

import (
	"context"
	"fmt"
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

	mu       sync.Mutex
	conns    map[net.Conn]struct{}
	refusing bool
	gates    [2]chan struct{} // for each way: nil, or closed when bytes pass again
	greeting []byte
}

// way is a direction of bytes.
type way int

const (
	up   way = iota // to the server
	down            // to the client
)

// Listen returns a relay on a loopback port. servers are given as host:port. delay may be
// nil.
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

// Through returns the configuration of a session that reaches its servers through
// relays at those addresses, given as host:port.
func Through(cfg recipes.SessionConfig, addrs ...string) recipes.SessionConfig {
	if cfg.TLS != nil && cfg.TLS.ServerName == "" {
		// No certificate contains the relay's address.
		tls := *cfg.TLS
		tls.ServerName, _, _ = net.SplitHostPort(cfg.Servers[0])
		cfg.TLS = &tls
	}
	cfg.Servers = addrs
	return cfg
}

// Addr is the address of the relay, as host:port.
func (r *Relay) Addr() string { return r.listener.Addr().String() }

// Cut breaks all connections and refuses new ones. Restore does not undo it. It returns
// when no bytes pass any more, and may be called again.
func (r *Relay) Cut() {
	r.stop()
	r.listener.Close()
	r.Refuse()
	r.open()
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
	if !r.add(client) {
		return
	}
	defer r.remove(client)
	r.pass(up)
	r.pass(down)
	server := r.dial()
	if server == nil {
		return
	}
	defer server.Close()
	if !r.add(server) {
		return
	}
	defer r.remove(server)
	var both sync.WaitGroup
	pipe := r.pipe
	if r.delay != nil {
		pipe = func(to, from net.Conn, _ way) { r.delay.pipe(to, from) }
	}
	both.Go(func() { pipe(server, client, up) })
	both.Go(func() { pipe(client, server, down) })
	both.Wait()
}

// pipe copies until the source ends, and then closes both connections.
func (r *Relay) pipe(to, from net.Conn, w way) {
	defer from.Close()
	defer to.Close()
	buffer := make([]byte, 32<<10) // a listing of a thousand contenders
	for first := true; ; first = false {
		n, err := from.Read(buffer)
		r.pass(w)
		if first && w == down && n > 0 {
			r.greet(buffer[:n])
		}
		if n > 0 {
			if _, err := to.Write(buffer[:n]); err != nil {
				return // perhaps Drop was called while the bytes were held back
			}
		}
		if err != nil {
			return
		}
	}
}

// dialTimeout is the time after which the relay tries the next server. A session gives an
// attempt two seconds (recipes.SessionConfig.ConnectTimeout), and has only the relay's address.
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

// add records a connection for Drop. It reports false if connections are refused.
func (r *Relay) add(conn net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.refusing {
		r.conns[conn] = struct{}{}
	}
	return !r.refusing
}

func (r *Relay) remove(conn net.Conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.conns, conn)
}
