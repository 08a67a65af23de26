package conn

import (
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/jute"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/lease"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/sasl"
)

// deadlineReader extends the read deadline whenever bytes arrive. go-zookeeper limits the time
// of a whole reply, but a large reply may take longer on a slow link.
type deadlineReader struct{ to *Conn }

func (a deadlineReader) Read(p []byte) (int, error) {
	n, err := a.to.Conn.Read(p)
	if timeout := a.to.wire.Lease.Timeout(); err == nil && timeout > 0 && a.to.established.Load() {
		err = a.to.Conn.SetReadDeadline(time.Now().Add(timeout * 2 / 3))
	}
	return n, err
}

// Read delivers the bytes of frames after it has parsed the start of each.
func (c *Conn) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for len(c.unread) == 0 && c.rest == 0 {
		if err := c.nextFrame(); err != nil {
			if !c.established.Load() {
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

// nextFrame reads the start of a frame into head. It handles watch events and the replies to the
// session's own requests. All other frames remain for go-zookeeper.
func (c *Conn) nextFrame() error {
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
	c.wire.Counters.responseBytes.Add(int64(lengthSize + length))
	if !c.established.Load() {
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
		return c.dropReply()
	}
	return nil
}

// event reads a watch event and passes it to the session, not to go-zookeeper, which has no
// watches.
func (c *Conn) event() error {
	if c.rest > maxReply {
		return fmt.Errorf("watch event of %d bytes", c.rest)
	}
	body := make([]byte, c.rest)
	if _, err := io.ReadFull(c.in, body); err != nil {
		return err
	}
	c.rest, c.unread = 0, nil
	c.wire.Counters.watchEvents.Add(1)
	d := jute.Decoder{Bytes: body}
	kind, _, path := Event(d.Int32()), d.Int32(), d.String()
	if d.Err != nil {
		return fmt.Errorf("watch event: %w", d.Err)
	}
	c.wire.Fired(kind, path)
	return nil
}

// handshake parses the reply to the connect request. Session id 0 means that the session has
// expired.
func (c *Conn) handshake(length int) error {
	if length > maxHandshake {
		return fmt.Errorf("handshake of %d bytes: not a ZooKeeper server?", length)
	}
	body := c.head[lengthSize:]
	timeout := time.Duration(int32(binary.BigEndian.Uint32(body[4:]))) * time.Millisecond
	id := int64(binary.BigEndian.Uint64(body[8:]))
	if rest, err := c.in.Peek(length - replyHeaderSize); err == nil && id != 0 && len(rest) >= lengthSize+PasswordSize {
		password := append([]byte(nil), rest[lengthSize:lengthSize+PasswordSize]...)
		c.wire.password.Store(&password)
	}
	c.wire.sessionID.Store(id)
	if id != 0 {
		// The ensemble stores the timeout that the first server granted. A new leader expires
		// the session by that, even if a later server granted more (minSessionTimeout).
		// go-zookeeper gets the smaller one too, because it determines the interval of pings.
		if least := c.wire.Lease.Timeout(); least > 0 {
			timeout = min(timeout, least)
			binary.BigEndian.PutUint32(body[4:], uint32(timeout.Milliseconds()))
		}
		c.wire.Lease.SetTimeout(timeout)
	}
	if id != 0 && (c.exchange != nil || c.wire.Digest != nil) {
		if err := c.authenticate(); err != nil {
			return err
		}
	}
	c.mu.Lock()
	c.established.Store(true)
	if !c.began.IsZero() && id != 0 {
		c.wire.Lease.Accepted(c.began)
	}
	c.mu.Unlock()
	return c.Conn.SetDeadline(time.Time{})
}

// reply records the answer whose header is in head. It returns the request if it is one of the
// session's own. It zeroes the zxid in the header: go-zookeeper would store it in a field that
// another goroutine reads without synchronization.
func (c *Conn) reply() (request sent, own bool) {
	body := c.head[lengthSize:]
	xid := int32(binary.BigEndian.Uint32(body))
	zxid, code := int64(binary.BigEndian.Uint64(body[4:])), Code(binary.BigEndian.Uint32(body[12:]))
	c.mu.Lock()
	for i, p := range c.pending {
		if p.xid == xid {
			request = p
			proof := request.proof
			if code != 0 { // a server may return an error without asking the leader
				proof = lease.Proof{}
			}
			c.evidence.Answered(c.wire.Lease, request.at, proof)
			if request.op == opClose {
				c.wire.setClosed()
			}
			c.pending = slices.Delete(c.pending, i, i+1) // clears the slot, so the batch can be freed
			break
		}
	}
	c.mu.Unlock()
	if zxid > 0 {
		c.wire.lastZxid.Store(zxid)
	}
	binary.BigEndian.PutUint64(body[4:], 0)
	return request, isRaw(xid)
}

// dropReply discards the body of a reply for which go-zookeeper has no buffer, and puts an
// error into its header.
func (c *Conn) dropReply() error {
	if _, err := c.in.Discard(c.rest); err != nil {
		return err
	}
	c.rest = 0
	binary.BigEndian.PutUint32(c.head[:], replyHeaderSize)
	code := oversized // a variable: the constant does not fit uint32
	binary.BigEndian.PutUint32(c.head[lengthSize+12:], uint32(code))
	return nil
}

// deliver reads the rest of the reply whose header is in head, and passes it to the waiting
// goroutine.
func (c *Conn) deliver(request sent) error {
	r := Reply{code: Code(binary.BigEndian.Uint32(c.head[lengthSize+12:]))}
	if size := replyHeaderSize + c.rest; size > request.most.bytes {
		r.code = oversized
		r.tooLarge = fmt.Errorf("%w: the reply has %d bytes, and %s is %d: %s",
			oversized, size, request.most.setting, request.most.bytes, request.most.remedy)
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
	case request.op == opCreate2 && r.code == Unimplemented:
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

// authenticate makes the SASL exchange and sends the digest credentials. It runs after the
// server's reply to the handshake, before go-zookeeper has read that reply. So no other request is
// sent before the server has accepted the credentials, and the contact counts only then.
// Otherwise connections whose credentials are refused would keep the session alive. The
// handshake's deadline applies. A refusal ends the session: the server would refuse again.
func (c *Conn) authenticate() error {
	handshake := make([]byte, c.rest)
	if _, err := io.ReadFull(c.in, handshake); err != nil {
		return err
	}
	c.unread, c.rest = slices.Concat(c.unread, handshake), 0
	if c.exchange != nil {
		if err := c.authenticateSASL(); err != nil {
			return err
		}
	}
	d := c.wire.Digest
	if d == nil {
		return nil
	}
	reply, err := c.ask(opAuth, digest(d.User+":"+d.Password))
	if err != nil {
		return fmt.Errorf("authenticate with digest: %w", err)
	}
	if reply.code == 0 {
		return nil
	}
	err = fmt.Errorf("authenticate with digest: %w (code %d)", recipes.ErrAuthFailed, reply.code)
	c.wire.Lost(err)
	return err
}

func (c *Conn) authenticateSASL() error {
	var reply Reply
	for {
		var token []byte
		var err error
		switch reply.code {
		case 0:
			token, err = c.exchange.Next(reply.body)
		case Unimplemented:
			err = sasl.ErrNotOffered
		default:
			err = fmt.Errorf("the server refused the credentials, or has another mechanism (code %d)", reply.code)
		}
		if err != nil {
			err = c.wire.dialer.sasl.Refused(c.RemoteAddr().String(), err)
			c.wire.Lost(err)
			return err
		}
		if token == nil {
			return nil
		}
		var e jute.Encoder
		e.Buffer(token)
		if reply, err = c.ask(opSASL, e.Bytes); err == nil && reply.code == 0 {
			d := jute.Decoder{Bytes: reply.body}
			reply.body, err = d.Buffer(), d.Err
		}
		if err != nil {
			return fmt.Errorf("SASL %s: %w", c.wire.SASL.Mechanism, err)
		}
	}
}

// ask sends a request before the connection is established, and reads the reply.
func (c *Conn) ask(op int32, body []byte) (r Reply, err error) {
	const xid, maxToken = 0, 64 << 10
	var e jute.Encoder
	e.Int32(int32(8 + len(body)))
	e.Int32(xid)
	e.Int32(op)
	c.wire.Counters.request(op)
	c.wire.Counters.requestBytes.Add(int64(len(e.Bytes) + len(body)))
	var head [lengthSize + replyHeaderSize]byte
	if err = c.write(append(e.Bytes, body...)); err == nil {
		_, err = io.ReadFull(c.in, head[:])
	}
	if err != nil {
		return r, err
	}
	length := int(int32(binary.BigEndian.Uint32(head[:])))
	if length < replyHeaderSize || length > maxToken || binary.BigEndian.Uint32(head[lengthSize:]) != xid {
		return r, jute.ErrMalformed
	}
	c.wire.Counters.responseBytes.Add(int64(lengthSize + length))
	r = Reply{code: Code(binary.BigEndian.Uint32(head[lengthSize+12:])), body: make([]byte, length-replyHeaderSize)}
	_, err = io.ReadFull(c.in, r.body)
	return r, err
}
