package session

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// wire is what a session knows from the bytes of all its connections.
type wire struct {
	maxPacket int
	start     time.Time    // origin of the monotonic offsets below
	contact   atomic.Int64 // when the last answered request was sent, as an offset from start
	lastZxid  atomic.Int64 // last transaction seen in a reply
	sessionID atomic.Int64 // of the latest handshake
	password  atomic.Pointer[[]byte]
	timeout   atomic.Int64 // negotiated in the latest handshake, in nanoseconds
	closed    chan struct{}
	closeOnce sync.Once

	// reauth is set when connections after the first give credentials before
	// anything else. Such a connection counts only when they were accepted: one
	// that fails there again and again must not keep the session alive.
	reauth      atomic.Bool
	authReplied func(accepted bool)
	refused     atomic.Bool // a server does not take the session's identity
	counters    counters
}

func newWire(maxPacket int) *wire {
	return &wire{maxPacket: maxPacket, start: time.Now(), closed: make(chan struct{})}
}

// isClosed reports whether the server has confirmed that the session is closed.
func (w *wire) isClosed() bool {
	select {
	case <-w.closed:
		return true
	default:
		return false
	}
}

func (w *wire) setClosed() { w.closeOnce.Do(func() { close(w.closed) }) }

// lastContact is the moment from which the server may count the session's
// timeout at the earliest: when the last request that was answered was sent.
func (w *wire) lastContact() time.Time { return w.start.Add(time.Duration(w.contact.Load())) }

// heard records that a request sent at that time was answered.
func (w *wire) heard(sent time.Time) {
	offset := int64(sent.Sub(w.start))
	for {
		old := w.contact.Load()
		if offset <= old || w.contact.CompareAndSwap(old, offset) {
			return
		}
	}
}

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
	// setWatches is xid, operation, relativeZxid, ....
	setWatchesZxidAt = lengthSize + 8
)

// conn is one connection of a session. go-zookeeper writes one whole frame a
// call and reads from one goroutine.
type conn struct {
	net.Conn
	wire *wire

	// relativeZxid is the last transaction seen before this connection. Watches
	// are re-armed relative to it: go-zookeeper would use what it has seen by
	// then, and replies that overtake the re-arming could carry it past a
	// change that no watch has reported.
	relativeZxid int64

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
	rawXid      int32  // of the session's own requests

	in     *bufio.Reader
	head   [lengthSize + replyHeaderSize]byte // start of the frame being read, patched
	unread []byte                             // the part of head not delivered yet
	rest   int                                // bytes of the frame after head
}

type sent struct {
	xid int32
	op  int32
	at  time.Time

	// Of the session's own requests: where the reply belongs.
	batch *batch
	index int
}

// newConn wraps a connection that has until deadline to complete ZooKeeper's
// handshake.
func newConn(c net.Conn, w *wire, deadline time.Time, failed func(error)) (*conn, error) {
	if err := c.SetDeadline(deadline); err != nil {
		return nil, err
	}
	return &conn{
		Conn:         c,
		wire:         w,
		relativeZxid: w.lastZxid.Load(),
		failed:       failed,
		closed:       make(chan struct{}),
		in:           bufio.NewReaderSize(c, 2<<10),
	}, nil
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

// Write sends one frame and notes when.
func (c *conn) Write(frame []byte) (int, error) {
	c.mu.Lock()
	if !c.established {
		c.pending = append(c.pending, sent{at: time.Now()})
		frame = withZxid(frame, connectZxidAt, c.relativeZxid)
	} else if len(frame) >= lengthSize+8 {
		xid := int32(binary.BigEndian.Uint32(frame[lengthSize:]))
		op := int32(binary.BigEndian.Uint32(frame[lengthSize+4:]))
		c.pending = append(c.pending, sent{xid: xid, op: op, at: time.Now()})
		c.wire.counters.request(op)
		if op == opSetWatches {
			frame = withZxid(frame, setWatchesZxidAt, c.relativeZxid)
		}
	}
	c.mu.Unlock()
	c.wire.counters.requestBytes.Add(int64(len(frame)))
	if err := c.write(frame); err != nil && c.isEstablished() {
		// go-zookeeper answers a request whose writing failed, and answers it
		// again when the connection ends: where it has room for one answer
		// only, as for the credentials that it gives again, it hangs for good.
		// So it learns of the failure by the end of the connection alone.
		c.Close()
	} else if err != nil {
		return 0, err
	}
	return len(frame), nil
}

// withZxid returns a copy of frame with zxid at that place.
func withZxid(frame []byte, at int, zxid int64) []byte {
	if len(frame) < at+8 {
		return frame
	}
	patched := append([]byte(nil), frame...)
	binary.BigEndian.PutUint64(patched[at:], uint64(zxid))
	return patched
}

// Read delivers the bytes of frames, after having looked at the start of each.
func (c *conn) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for len(c.unread) == 0 && c.rest == 0 {
		if err := c.nextFrame(); err != nil {
			if !c.isEstablished() {
				c.failed(fmt.Errorf("handshake with %s: %w", c.RemoteAddr(), err))
			}
			return 0, err
		}
	}
	if len(c.unread) > 0 {
		n := copy(p, c.unread)
		c.unread = c.unread[n:]
		return n, nil
	}
	if len(p) > c.rest {
		p = p[:c.rest]
	}
	n, err := c.in.Read(p)
	c.rest -= n
	return n, err
}

// nextFrame reads the start of a frame into head.
func (c *conn) nextFrame() error {
	if _, err := io.ReadFull(c.in, c.head[:lengthSize]); err != nil {
		return err
	}
	length := int(int32(binary.BigEndian.Uint32(c.head[:])))
	if length < replyHeaderSize {
		return fmt.Errorf("frame of %d bytes, shorter than its header", length)
	}
	if _, err := io.ReadFull(c.in, c.head[lengthSize:]); err != nil {
		return err
	}
	c.unread, c.rest = c.head[:], length-replyHeaderSize
	c.wire.counters.responseBytes.Add(int64(lengthSize + length))
	if !c.isEstablished() {
		return c.handshake(length)
	}
	request, own := c.reply()
	switch {
	case own:
		return c.deliver(request)
	case length > c.wire.maxPacket:
		return c.oversized()
	}
	return nil
}

// handshake looks at the reply to the connect request. A session id of 0 says
// that the session has expired.
func (c *conn) handshake(length int) error {
	if length > 1<<10 {
		return fmt.Errorf("handshake of %d bytes: not a ZooKeeper server?", length)
	}
	body := c.head[lengthSize:]
	timeout := time.Duration(int32(binary.BigEndian.Uint32(body[4:]))) * time.Millisecond
	id := int64(binary.BigEndian.Uint64(body[8:]))
	if rest, err := c.in.Peek(length - replyHeaderSize); err == nil && id != 0 && len(rest) >= lengthSize+passwordSize {
		password := append([]byte(nil), rest[lengthSize:lengthSize+passwordSize]...)
		c.wire.password.Store(&password)
	}
	c.wire.sessionID.Store(id)
	if id != 0 {
		c.wire.timeout.Store(int64(timeout))
	}
	c.mu.Lock()
	c.established = true
	c.trusted = !c.wire.reauth.Load()
	if len(c.pending) > 0 && id != 0 && c.trusted {
		c.wire.heard(c.pending[0].at)
	}
	c.pending = nil
	c.mu.Unlock()
	return c.Conn.SetDeadline(time.Time{})
}

// reply notes the answer whose header is in head, and takes the zxid out of it:
// go-zookeeper would keep it in a field that it reads from another goroutine. It
// returns the request if it is one of the session's own.
func (c *conn) reply() (request sent, own bool) {
	body := c.head[lengthSize:]
	xid := int32(binary.BigEndian.Uint32(body))
	zxid := int64(binary.BigEndian.Uint64(body[4:]))
	if xid == xidEvent {
		c.wire.counters.watchEvents.Add(1)
		return sent{}, false
	}
	auth, accepted := false, false
	c.mu.Lock()
	for i := range c.pending {
		if request = c.pending[i]; request.xid == xid {
			if request.op == opAuth && c.wire.reauth.Load() && !isRaw(xid) {
				auth, accepted = true, binary.BigEndian.Uint32(body[12:]) == 0
				c.trusted = accepted
			}
			if c.trusted {
				c.wire.heard(request.at)
			}
			if request.op == opClose {
				c.wire.setClosed()
			}
			c.pending = append(c.pending[:i], c.pending[i+1:]...)
			break
		}
	}
	c.mu.Unlock()
	if auth {
		c.wire.authReplied(accepted)
	}
	if zxid > 0 {
		c.wire.lastZxid.Store(zxid)
	}
	binary.BigEndian.PutUint64(body[4:], 0)
	return request, isRaw(xid)
}

// oversized drops the body of a reply that is larger than the session takes, and
// makes its header say so. go-zookeeper would close the connection, connect,
// and be asked the same again.
func (c *conn) oversized() error {
	if _, err := c.in.Discard(c.rest); err != nil {
		return err
	}
	c.rest = 0
	binary.BigEndian.PutUint32(c.head[:], replyHeaderSize)
	code := int32(codeOversized)
	binary.BigEndian.PutUint32(c.head[lengthSize+12:], uint32(code))
	return nil
}
