package simulation

import (
	"net"
	"sync"
	"syscall"
	"time"
)

// conn is one end of a connection.
type conn struct {
	in, out *pipe
	once    sync.Once
	gone    func() // called at Close; removes the connection from its host
}

// newConns returns the two ends of a connection, with the delay of each direction.
func newConns(there, back func() time.Duration) (near, far *conn) {
	a, b := newPipe(there), newPipe(back)
	return &conn{in: b, out: a}, &conn{in: a, out: b}
}

// Read returns an error after the peer has closed the connection. When it has returned one, writes
// fail, as after a reset by the peer.
func (c *conn) Read(b []byte) (int, error) {
	n, err := c.in.Read(b)
	if err != nil && !isTimeout(err) {
		c.out.refuse(syscall.EPIPE)
	}
	return n, err
}

func isTimeout(err error) bool {
	ne, ok := err.(net.Error)
	return ok && ne.Timeout()
}

func (c *conn) Write(b []byte) (int, error) { return c.out.Write(b) }

// Close ends both directions. Bytes that were written before are still delivered.
func (c *conn) Close() error {
	c.once.Do(func() {
		c.out.finish(net.ErrClosed)
		c.in.shut()
		if c.gone != nil {
			c.gone()
		}
	})
	return nil
}

func (c *conn) SetDeadline(t time.Time) error {
	c.in.setReadDeadline(t)
	c.out.setWriteDeadline(t)
	return nil
}

func (c *conn) SetReadDeadline(t time.Time) error  { c.in.setReadDeadline(t); return nil }
func (c *conn) SetWriteDeadline(t time.Time) error { c.out.setWriteDeadline(t); return nil }

func (c *conn) LocalAddr() net.Addr  { return address{} }
func (c *conn) RemoteAddr() net.Addr { return address{} }

type address struct{}

func (address) Network() string { return "simulated" }
func (address) String() string  { return "simulated" }
