package session

import (
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/zkrecipes/internal/jute"
)

// arriving reads what comes over the connection. Whenever something comes it puts off
// the deadline for reading. go-zookeeper bounds the time of a whole reply, and a large
// one may take longer on a slow link.
type arriving struct{ *conn }

func (a arriving) Read(p []byte) (int, error) {
	n, err := a.Conn.Read(p)
	if timeout := a.wire.sessionTimeout(); err == nil && timeout > 0 && a.isEstablished() {
		err = a.Conn.SetReadDeadline(time.Now().Add(timeout * 2 / 3))
	}
	return n, err
}

// Read delivers the bytes of frames, after having looked at the start of each.
func (c *conn) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for len(c.unread) == 0 && c.rest == 0 {
		if err := c.nextFrame(); err != nil {
			if !c.isEstablished() {
				c.failed(c.refused(err))
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
	if int32(binary.BigEndian.Uint32(c.head[lengthSize:])) == xidEvent {
		return c.event()
	}
	request, own := c.reply()
	switch {
	case own:
		return c.deliver(request)
	case length > maxLibraryReply:
		return c.oversized()
	}
	return nil
}

// event reads a watch event, which is not for go-zookeeper: it would keep watches of its
// own, and arm them again after a reconnect, when whoever waited looks again anyway.
func (c *conn) event() error {
	if c.rest > maxReply {
		return fmt.Errorf("watch event of %d bytes", c.rest)
	}
	body := make([]byte, c.rest)
	if _, err := io.ReadFull(c.in, body); err != nil {
		return err
	}
	c.rest, c.unread = 0, nil
	c.wire.counters.watchEvents.Add(1)
	d := jute.Decoder{Bytes: body}
	kind, _, path := zk.EventType(d.Int32()), d.Int32(), d.String()
	if d.Err != nil {
		return fmt.Errorf("watch event: %w", d.Err)
	}
	c.wire.fire(kind, path)
	return nil
}

// handshake looks at the reply to the connect request. A session id of 0 says
// that the session has expired.
func (c *conn) handshake(length int) error {
	if length > maxHandshake {
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
		c.wire.know(c.began)
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
	auth, accepted := false, false
	c.mu.Lock()
	for i, p := range c.pending {
		if p.xid == xid {
			request = p
			if request.op == opAuth && c.wire.reauth.Load() && !isRaw(xid) {
				auth, accepted = true, binary.BigEndian.Uint32(body[12:]) == 0
				c.trusted = accepted
				if accepted {
					c.wire.know(c.began)
				}
			}
			if c.trusted {
				c.answered(request, binary.BigEndian.Uint32(body[12:]) == 0)
			}
			if request.op == opClose {
				c.wire.setClosed()
			}
			c.pending = slices.Delete(c.pending, i, i+1) // and nothing of it is kept
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

// answered notes a contact, and what its answer proves. An error may be the word of
// a server that has not asked its leader.
func (c *conn) answered(request sent, well bool) {
	c.wire.heard(request.at)
	c.evidence.heard(contact{c.wire.offset(request.at), c.wire.offset(time.Now())}, youth(c.wire.sessionTimeout()))
	if well && leads(request.op) {
		c.evidence.asked = max(c.evidence.asked, request.asks)
		c.wire.know(request.knows)
	}
}

// oversized drops the body of a reply that go-zookeeper has no room for, and has its
// header say so.
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
