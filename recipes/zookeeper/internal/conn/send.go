package conn

import (
	"cmp"
	"encoding/binary"
	"io"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/jute"
)

// rawXids separates the xids of the session's own requests from go-zookeeper's, which are
// positive, and from the small negative xids that have a special meaning.
const rawXids = -1 << 31

func isRaw(xid int32) bool { return xid < rawXids/2 }

// send writes the requests in one call.
func (c *Conn) send(requests []Request) (*Batch, error) {
	if c == nil {
		return nil, ErrNotSent
	}
	b := &Batch{Conn: c, replies: make([]Reply, len(requests)), answered: make(chan struct{}), missing: len(requests)}
	var e jute.Encoder
	c.mu.Lock()
	if !c.established || !c.trusted || Happened(c.closed) {
		c.mu.Unlock()
		return nil, ErrNotSent
	}
	now := time.Now()
	for i, r := range requests {
		c.rawXid = (c.rawXid + 1) & (1<<30 - 1)
		xid := rawXids + c.rawXid
		e.Int32(int32(8 + len(r.body)))
		e.Int32(xid)
		e.Int32(r.op)
		e.Bytes = append(e.Bytes, r.body...)
		c.note(sent{xid: xid, op: r.op, at: now, batch: b, index: i, most: cmp.Or(r.most, maxReply)})
	}
	c.mu.Unlock()
	c.wire.Counters.requestBytes.Add(int64(len(e.Bytes)))
	if err := c.write(e.Bytes); err != nil {
		c.Close() // a part may have been sent
		return nil, err
	}
	return b, nil
}

// write writes bytes without interleaving. It sets the deadline itself: a caller of
// SetWriteDeadline cannot know which goroutine writes next.
func (c *Conn) write(b []byte) error {
	c.out.Lock()
	defer c.out.Unlock()
	if timeout := c.wire.Lease.Timeout(); timeout > 0 && c.isEstablished() {
		if err := c.Conn.SetWriteDeadline(time.Now().Add(timeout * 2 / 3)); err != nil {
			return &lostError{err}
		}
	}
	if _, err := c.Conn.Write(b); err != nil {
		return &lostError{err}
	}
	return nil
}

// deliver reads the rest of the reply whose header is in head, and passes it to the waiting
// goroutine.
func (c *Conn) deliver(request sent) error {
	r := Reply{code: Code(binary.BigEndian.Uint32(c.head[lengthSize+12:]))}
	if replyHeaderSize+c.rest > request.most {
		r.code = oversized
		if _, err := c.in.Discard(c.rest); err != nil {
			return err
		}
	} else {
		r.body = make([]byte, c.rest)
		if _, err := io.ReadFull(c.in, r.body); err != nil {
			return err
		}
	}
	c.rest, c.unread = 0, nil
	switch { // in both cases the server closes the connection now
	case request.op == opAuth && r.code != 0:
		c.wire.RefuseIdentity()
	case request.op == opCreate2 && r.code == unimplemented:
		c.wire.noCreate2.Store(true)
	}
	if b := request.batch; b != nil {
		b.replies[request.index] = r
		if b.missing--; b.missing == 0 {
			close(b.answered)
		}
	}
	return nil
}
