package zktest

import (
	"context"
	"net"
	"sync"
	"syscall"
)

// Network is the network of a process that a test kills: ZooKeeper receives nothing more from it.
type Network struct {
	mu    sync.Mutex
	cut   bool
	conns []net.Conn
}

// Dial is for zookeeper.Dialer.
func (n *Network) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.cut {
		return nil, syscall.ECONNREFUSED
	}
	c, err := new(net.Dialer).DialContext(ctx, network, address)
	if err == nil {
		n.conns = append(n.conns, c)
	}
	return c, err
}

// Cut closes all connections. No more are opened.
func (n *Network) Cut() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.cut = true
	for _, c := range n.conns {
		_ = c.Close()
	}
}
