package conn

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/binary"
	"hash/fnv"
	"math"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/jute"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/lease"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/sasl"
)

// Frame layout: a length, then xid and operation in a request, or xid, zxid and error code in a
// reply. Handshake frames have a layout of their own.
const (
	lengthSize      = 4
	replyHeaderSize = 16
	xidEvent        = -1
	xidPing         = -2

	// The connect request is protocol version, lastZxidSeen, timeout, session id, password.
	connectZxidAt = lengthSize + 4
	connectIDAt   = connectZxidAt + 8 + 4

	// maxHandshake exceeds the size of every reply to a connect request.
	maxHandshake = 512

	// PasswordSize is the length, in bytes, of a session's password.
	PasswordSize = 16
)

// Conn is one connection of a session. go-zookeeper writes one whole frame per call and reads
// from one goroutine. A nil Conn sends nothing.
type Conn struct {
	net.Conn
	wire *Wire

	seen  int64 // the last transaction seen before this connection
	asked int64 // the session of the connect request; 0 for a new one

	// failed receives the reason why a connection ended before it was established. go-zookeeper
	// only logs that reason.
	failed   func(error)
	exchange sasl.Exchange // authenticates the connection; nil without SASL

	closed    chan struct{}
	closeOnce sync.Once
	out       sync.Mutex // held while a frame is written
	kernel    bool       // the operating system buffers what is written

	identifying sync.Mutex
	identified  bool // the session's identity was sent; guarded by identifying

	established atomic.Bool // the server has accepted the session and its credentials; set under mu

	mu       sync.Mutex
	pending  []sent // requests without an answer, in order
	waiting  int    // their size, in bytes
	evidence lease.Evidence
	began    time.Time // when the connect request was sent
	rawXid   int32     // the last xid of the session's own requests

	in     *bufio.Reader
	head   [lengthSize + replyHeaderSize]byte // start of the frame being read, patched
	unread []byte                             // the part of head not delivered yet
	rest   int                                // bytes of the frame after head
}

type sent struct {
	xid   int32
	op    int32
	size  int // in bytes
	at    time.Time
	proof lease.Proof

	// For the session's own requests: the batch and index of the reply, and its largest size.
	batch *Batch
	index int
	most  bound
}

// newConn wraps a connection that must complete ZooKeeper's handshake before deadline.
func newConn(c net.Conn, w *Wire, deadline time.Time, failed func(error)) (*Conn, error) {
	if err := c.SetDeadline(deadline); err != nil {
		return nil, err
	}
	made := &Conn{Conn: c, wire: w, seen: w.LastZxid(), failed: failed, closed: make(chan struct{}), kernel: buffered(c)}
	made.in = bufio.NewReaderSize(deadlineReader{made}, maxHandshake) // larger reads bypass the buffer
	return made, nil
}

// SetReadDeadline does nothing before the handshake is complete: newConn has set its deadline.
func (c *Conn) SetReadDeadline(t time.Time) error {
	if !c.established.Load() {
		return nil
	}
	return c.Conn.SetReadDeadline(t)
}

// SetWriteDeadline does nothing. Conn.write sets the deadline, because go-zookeeper is not the
// only writer.
func (c *Conn) SetWriteDeadline(time.Time) error { return nil }

// Write sends one frame and records when.
func (c *Conn) Write(frame []byte) (int, error) {
	c.mu.Lock()
	if !c.established.Load() {
		c.began = time.Now()
		frame = withZxid(c.wire.resuming(frame), c.seen)
		c.asked = sessionOf(frame)
	} else if len(frame) >= lengthSize+8 {
		xid := int32(binary.BigEndian.Uint32(frame[lengthSize:]))
		op := int32(binary.BigEndian.Uint32(frame[lengthSize+4:]))
		if op == opClose && c.wire.spared.Load() {
			c.mu.Unlock()
			return 0, errSpared
		}
		if xid == xidPing && c.confirmed() {
			c.mu.Unlock()
			return len(frame), nil
		}
		c.note(sent{xid: xid, op: op, size: len(frame), at: time.Now()})
	}
	c.mu.Unlock()
	c.wire.Counters.requestBytes.Add(int64(len(frame)))
	if err := c.write(frame); err != nil {
		if !c.established.Load() {
			c.failed(c.refused(err))
		}
		return 0, err
	}
	return len(frame), nil
}

// confirmed reports whether the session sends leading requests at intervals that are shorter than
// those of pings, and the server answers them. Then a ping would be a needless extra request.
// go-zookeeper does not wait for the answer to a ping.
func (c *Conn) confirmed() bool {
	l := c.wire.Lease
	return l.Holds() > 0 && time.Since(l.LastAsked()) < 2*l.Interval()
}

// Phase returns a number that all connections of a host share, and that differs between hosts.
func (c *Conn) Phase() int64 {
	if c == nil {
		return 0
	}
	local, _ := c.LocalAddr().(*net.TCPAddr)
	if local == nil {
		return 0
	}
	h := fnv.New32a()
	h.Write(local.IP)
	return int64(h.Sum32())
}

// note records a request that is about to be sent.
func (c *Conn) note(s sent) {
	if s.op == opSync || operations[s.op].class == write {
		// A leading request: a follower forwards it to the leader and answers after the leader.
		s.proof = c.evidence.Asking(c.wire.Lease, s.at)
	}
	c.pending = append(c.pending, s)
	c.waiting += s.size
	c.wire.Counters.request(s.op)
}

// sessionOf returns the session id of a connect request.
func sessionOf(frame []byte) int64 {
	if len(frame) < connectIDAt+8 {
		return 0
	}
	return int64(binary.BigEndian.Uint64(frame[connectIDAt:]))
}

// withZxid returns a copy of a connect request with the given lastZxidSeen.
func withZxid(frame []byte, zxid int64) []byte {
	if len(frame) < connectZxidAt+8 {
		return frame
	}
	patched := append([]byte(nil), frame...)
	binary.BigEndian.PutUint64(patched[connectZxidAt:], uint64(zxid))
	return patched
}

// Close closes the connection and wakes the goroutines that wait for replies.
func (c *Conn) Close() error {
	c.closeOnce.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

// rawXids separates the xids of the session's own requests from go-zookeeper's, which are
// positive, and from the small negative xids that have a special meaning.
const rawXids = -1 << 31

func isRaw(xid int32) bool { return xid < rawXids/2 }

// Send sends the requests in one write, which may wait for the server to read.
func (c *Conn) Send(requests ...Request) (*Batch, error) {
	if c == nil {
		return nil, ErrNotSent
	}
	if c.wire.Life.Err() != nil {
		return nil, context.Cause(c.wire.Life)
	}
	if slices.ContainsFunc(requests, identified) && c.wire.Identified() {
		if err := c.identify(); err != nil {
			return nil, err
		}
	}
	b, frames, err := c.enqueue(requests, math.MaxInt)
	if err != nil {
		return nil, err
	}
	c.out.Lock()
	defer c.out.Unlock()
	return c.finish(b, frames)
}

// SendNow is Send for a write that cannot block, because the operating system buffers it. So a
// goroutine that must return when its context ends can send by itself; starting another one costs
// as much as the request. If the write might block, SendNow sends nothing, and batch and err are
// nil.
func (c *Conn) SendNow(requests ...Request) (batch *Batch, err error) {
	if c == nil || !c.kernel || c.wire.Life.Err() != nil {
		return nil, nil
	}
	if slices.ContainsFunc(requests, identified) && c.wire.Identified() && !c.hasIdentity() {
		return nil, nil // Send sends the identity first, once
	}
	if !c.out.TryLock() {
		return nil, nil
	}
	defer c.out.Unlock()
	b, frames, err := c.enqueue(requests, buffers)
	if err != nil {
		return nil, nil // Send returns the reason, if it cannot send either
	}
	return c.finish(b, frames)
}

// buffers bounds the unanswered bytes, in total, up to which SendNow sends. A socket accepts
// several times as much before it blocks a writer.
const buffers = 2 << 10

func identified(r Request) bool { return r.identified }

// buffered reports whether the operating system buffers what is written to a connection.
func buffered(c net.Conn) bool {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	_, ok := c.(*net.TCPConn)
	return ok
}

// enqueue makes a batch of the requests, and the frames to be written. It returns ErrNotSent if
// the connection cannot be used, or would have more than most unanswered bytes with these
// requests.
func (c *Conn) enqueue(requests []Request, most int) (*Batch, []byte, error) {
	if err := c.wire.allows(requests); err != nil {
		return nil, nil, err
	}
	b := &Batch{Conn: c, replies: make([]Reply, len(requests)), answered: make(chan struct{}), missing: len(requests)}
	var e jute.Encoder
	c.mu.Lock()
	defer c.mu.Unlock()
	size := c.waiting
	for _, r := range requests {
		size += frameSize(r)
	}
	if !c.established.Load() || Happened(c.closed) || size > most {
		return nil, nil, ErrNotSent
	}
	now := time.Now()
	for i, r := range requests {
		c.rawXid = (c.rawXid + 1) & (1<<30 - 1)
		xid := rawXids + c.rawXid
		e.Int32(int32(8 + len(r.body)))
		e.Int32(xid)
		e.Int32(r.op)
		e.Bytes = append(e.Bytes, r.body...)
		c.note(sent{xid: xid, op: r.op, size: frameSize(r), at: now, batch: b, index: i, most: c.wire.bound(r)})
	}
	return b, e.Bytes, nil
}

// frameSize returns the size of a request with its header and length, in bytes.
func frameSize(r Request) int { return lengthSize + 8 + len(r.body) }

// finish writes the frames of a batch. The caller holds out.
func (c *Conn) finish(b *Batch, frames []byte) (*Batch, error) {
	c.wire.Counters.requestBytes.Add(int64(len(frames)))
	if err := c.writeLocked(frames); err != nil {
		c.Close() // a part may have been sent
		return nil, err
	}
	return b, nil
}

// identify sends the identity once on the connection. Concurrent callers return after it was
// sent.
func (c *Conn) identify() error {
	c.identifying.Lock()
	defer c.identifying.Unlock()
	if c.identified {
		return nil
	}
	_, err := c.Send(Request{op: opAuth, body: digest(c.wire.Identity)})
	c.identified = err == nil
	return err
}

// hasIdentity reports whether the identity was sent. It does not wait for identify.
func (c *Conn) hasIdentity() bool {
	if !c.identifying.TryLock() {
		return false
	}
	defer c.identifying.Unlock()
	return c.identified
}

// digest returns the body of a request that adds a user and its password to the connection.
func digest(credentials string) []byte {
	var e jute.Encoder
	e.Int32(0)
	e.String("digest")
	e.String(credentials)
	return e.Bytes
}

// Exchange sends the requests in one write and waits for the replies: see Batch.Await.
func (c *Conn) Exchange(ctx context.Context, requests ...Request) ([]Reply, error) {
	b, err := c.Send(requests...)
	if err != nil {
		return nil, err
	}
	return b.Await(ctx)
}

// Ask sends one request and decodes the answer. It waits until the session or the connection ends.
func Ask[T any](c *Conn, request Request, read func(Reply) (T, error)) (T, error) {
	replies, err := c.Exchange(context.Background(), request)
	if err != nil {
		var none T
		return none, err
	}
	return read(replies[0])
}

// write writes bytes without interleaving. It sets the deadline itself: a caller of
// SetWriteDeadline cannot know which goroutine writes next.
func (c *Conn) write(b []byte) error {
	c.out.Lock()
	defer c.out.Unlock()
	return c.writeLocked(b)
}

// writeLocked does the same. The caller holds out.
func (c *Conn) writeLocked(b []byte) error {
	if timeout := c.wire.Lease.Timeout(); timeout > 0 && c.established.Load() {
		if err := c.Conn.SetWriteDeadline(time.Now().Add(timeout * 2 / 3)); err != nil {
			return &lostError{err}
		}
	}
	if _, err := c.Conn.Write(b); err != nil {
		return &lostError{err}
	}
	return nil
}
