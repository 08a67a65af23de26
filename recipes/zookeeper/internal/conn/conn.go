package conn

import (
	"bufio"
	"encoding/binary"
	"net"
	"sync"
	"time"

	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/lease"
)

// Frame layout: a length, then for requests xid and operation, for replies xid,
// zxid and error code. The handshake has frames of its own.
const (
	lengthSize      = 4
	replyHeaderSize = 16
	xidEvent        = -1
	xidPing         = -2

	// The connect request is protocol version, lastZxidSeen, timeout, session
	// id, password; the reply is protocol version, timeout, session id,
	// password. Servers since 3.4 add a byte for read-only mode.
	connectZxidAt = lengthSize + 4

	// maxHandshake is more than a server answers to a connect request.
	maxHandshake = 512

	// PasswordSize is the length, in bytes, of a session's password.
	PasswordSize = 16
)

// Conn is one connection of a session. go-zookeeper writes one whole frame a
// call and reads from one goroutine. A nil Conn sends nothing.
type Conn struct {
	net.Conn
	wire *Wire

	seen int64 // the last transaction seen before this connection

	// failed is told why a connection ended before it was established, which
	// go-zookeeper only logs.
	failed func(error)

	closed    chan struct{}
	closeOnce sync.Once
	out       sync.Mutex // held while a frame is written

	identifying sync.Mutex
	identified  bool // the session's identity was given; under identifying

	mu          sync.Mutex
	established bool   // the handshake's reply has been read
	trusted     bool   // the credentials were accepted, where they are given again
	pending     []sent // requests without an answer, in order
	evidence    lease.Evidence
	began       time.Time // when the handshake's request was sent
	rawXid      int32     // of the session's own requests

	in     *bufio.Reader
	head   [lengthSize + replyHeaderSize]byte // start of the frame being read, patched
	unread []byte                             // the part of head not delivered yet
	rest   int                                // bytes of the frame after head
}

type sent struct {
	xid   int32
	op    int32
	at    time.Time
	proof lease.Proof

	// Of the session's own requests: where the reply belongs, and how long it may be.
	batch *Batch
	index int
	most  int
}

// newConn wraps a connection that has until deadline to complete ZooKeeper's
// handshake.
func newConn(c net.Conn, w *Wire, deadline time.Time, failed func(error)) (*Conn, error) {
	if err := c.SetDeadline(deadline); err != nil {
		return nil, err
	}
	made := &Conn{Conn: c, wire: w, seen: w.LastZxid(), failed: failed, closed: make(chan struct{})}
	made.in = bufio.NewReaderSize(deadlineReader{made}, maxHandshake) // what is larger is read past it
	return made, nil
}

// SetReadDeadline leaves the handshake to the deadline that newConn has set.
func (c *Conn) SetReadDeadline(t time.Time) error {
	if !c.isEstablished() {
		return nil
	}
	return c.Conn.SetReadDeadline(t)
}

// SetWriteDeadline is left to write, for go-zookeeper is not alone in writing.
func (c *Conn) SetWriteDeadline(time.Time) error { return nil }

func (c *Conn) isEstablished() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.established
}

// Asked reports whether the server was asked for the session on this connection.
func (c *Conn) Asked() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.began.IsZero()
}

// Write sends one frame and notes when.
func (c *Conn) Write(frame []byte) (int, error) {
	c.mu.Lock()
	if !c.established {
		c.began = time.Now()
		frame = withZxid(c.wire.resuming(frame), c.seen)
	} else if len(frame) >= lengthSize+8 {
		xid := int32(binary.BigEndian.Uint32(frame[lengthSize:]))
		op := int32(binary.BigEndian.Uint32(frame[lengthSize+4:]))
		if op == opClose && c.wire.spared.Load() {
			c.mu.Unlock()
			return 0, errSpared
		}
		c.note(sent{xid: xid, op: op, at: time.Now()})
	}
	c.mu.Unlock()
	c.wire.Counters.requestBytes.Add(int64(len(frame)))
	switch err := c.write(frame); {
	case err == nil:
	case c.isEstablished():
		// go-zookeeper answers a request whose writing failed, and answers it
		// again when the connection ends. Where it has room for one answer
		// only, as for the credentials of a reconnect, it hangs for good. So it
		// learns of the failure by the end of the connection alone.
		c.Close()
	default:
		c.failed(c.refused(err))
		return 0, err
	}
	return len(frame), nil
}

// note enters a request that is about to be sent.
func (c *Conn) note(s sent) {
	if leads(s.op) {
		s.proof = c.evidence.Asking(c.wire.Lease, s.at)
	}
	c.pending = append(c.pending, s)
	c.wire.Counters.request(s.op)
}

// withZxid returns a copy of a connect request with that lastZxidSeen.
func withZxid(frame []byte, zxid int64) []byte {
	if len(frame) < connectZxidAt+8 {
		return frame
	}
	patched := append([]byte(nil), frame...)
	binary.BigEndian.PutUint64(patched[connectZxidAt:], uint64(zxid))
	return patched
}

// Close closes the connection and tells who waits for replies.
func (c *Conn) Close() error {
	c.closeOnce.Do(func() { close(c.closed) })
	return c.Conn.Close()
}
