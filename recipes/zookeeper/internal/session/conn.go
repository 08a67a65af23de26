package session

import (
	"bufio"
	"encoding/binary"
	"net"
	"sync"
	"time"
)

// Frame layout: a length, then for requests xid and operation, for replies xid,
// zxid and error code. The handshake has frames of its own.
const (
	lengthSize      = 4
	replyHeaderSize = 16
	passwordSize    = 16
	xidEvent        = -1
	xidPing         = -2

	// The connect request is protocol version, lastZxidSeen, timeout, session
	// id, password; the reply is protocol version, timeout, session id,
	// password. Servers since 3.4 add a byte for read-only mode.
	connectZxidAt = lengthSize + 4

	// maxHandshake is more than a server answers to a connect request.
	maxHandshake = 512
)

// conn is one connection of a session. go-zookeeper writes one whole frame a
// call and reads from one goroutine.
type conn struct {
	net.Conn
	wire *wire

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
	evidence    evidence
	began       time.Duration // when the handshake's request was sent
	rawXid      int32         // of the session's own requests

	in     *bufio.Reader
	head   [lengthSize + replyHeaderSize]byte // start of the frame being read, patched
	unread []byte                             // the part of head not delivered yet
	rest   int                                // bytes of the frame after head
}

type sent struct {
	xid int32
	op  int32
	at  time.Time
	proof

	// Of the session's own requests: where the reply belongs, and how long it may be.
	batch *batch
	index int
	most  int
}

// newConn wraps a connection that has until deadline to complete ZooKeeper's
// handshake.
func newConn(c net.Conn, w *wire, deadline time.Time, failed func(error)) (*conn, error) {
	if err := c.SetDeadline(deadline); err != nil {
		return nil, err
	}
	made := &conn{Conn: c, wire: w, seen: w.lastZxid.Load(), failed: failed, closed: make(chan struct{})}
	made.in = bufio.NewReaderSize(arriving{made}, maxHandshake) // what is larger is read past it
	return made, nil
}

// SetReadDeadline leaves the handshake to the deadline that newConn has set.
func (c *conn) SetReadDeadline(t time.Time) error {
	if !c.isEstablished() {
		return nil
	}
	return c.Conn.SetReadDeadline(t)
}

// SetWriteDeadline is left to write, for go-zookeeper is not alone in writing.
func (c *conn) SetWriteDeadline(time.Time) error { return nil }

func (c *conn) isEstablished() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.established
}

// asked reports whether the server was asked for the session on this connection.
func (c *conn) asked() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.began > 0
}

// Write sends one frame and notes when.
func (c *conn) Write(frame []byte) (int, error) {
	c.mu.Lock()
	if !c.established {
		c.pending = append(c.pending, sent{at: time.Now()})
		c.began = c.wire.offset(c.pending[0].at)
		frame = withZxid(c.wire.resuming(frame), c.seen)
	} else if len(frame) >= lengthSize+8 {
		xid := int32(binary.BigEndian.Uint32(frame[lengthSize:]))
		op := int32(binary.BigEndian.Uint32(frame[lengthSize+4:]))
		if op == opClose && c.wire.spared.Load() {
			c.mu.Unlock()
			return 0, errLetGo
		}
		c.note(sent{xid: xid, op: op, at: time.Now()})
	}
	c.mu.Unlock()
	c.wire.counters.requestBytes.Add(int64(len(frame)))
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
func (c *conn) note(s sent) {
	if leads(s.op) {
		now := c.wire.offset(s.at)
		c.evidence.age(now, youth(c.wire.sessionTimeout()))
		s.proof = proof{asks: c.evidence.old, knows: c.evidence.asked}
		raise(&c.wire.leaderAsked, now)
	}
	c.pending = append(c.pending, s)
	c.wire.counters.request(s.op)
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
