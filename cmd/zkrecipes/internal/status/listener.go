package status

import (
	"net"
	"slices"
	"sync"
)

const (
	// mostConnections is more than a load balancer, a probe and Prometheus need at a time.
	mostConnections = 16
	// spare is how many descriptors connections leave to the rest of the process: to start
	// the command, or another plugin.
	spare = 32
)

// listener keeps few connections open, so that they do not use up the descriptors of this process.
// When another connection arrives it closes the oldest one, which has been answered or is idle.
type listener struct {
	net.Listener
	scarce func() bool // whether fewer descriptors than spare are free

	mu   sync.Mutex
	open []*connection // the oldest first
}

type connection struct {
	net.Conn
	from *listener
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		added := &connection{c, l}
		if l.add(added) {
			return added, nil
		}
		_ = c.Close()
	}
}

// add adds a connection, and may close the oldest one for it. It returns false if there is no
// room.
func (l *listener) add(c *connection) bool {
	scarce := l.scarce()
	l.mu.Lock()
	var oldest *connection
	if len(l.open) > 0 && (scarce || len(l.open) == mostConnections) {
		oldest = l.open[0]
		l.open = l.open[1:]
	}
	added := oldest != nil || !scarce
	if added {
		l.open = append(l.open, c)
	}
	l.mu.Unlock()
	if oldest != nil {
		_ = oldest.Close()
	}
	return added
}

// Close implements net.Conn.
func (c *connection) Close() error {
	c.from.mu.Lock()
	c.from.open = slices.DeleteFunc(c.from.open, func(other *connection) bool { return other == c })
	c.from.mu.Unlock()
	return c.Conn.Close()
}
