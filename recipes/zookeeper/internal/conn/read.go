package conn

import (
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/jute"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/lease"
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
		c.sawEnd(err)
		return err
	}
	length := int(int32(binary.BigEndian.Uint32(c.head[:])))
	if length < replyHeaderSize {
		return c.wrong(fmt.Errorf("frame of %d bytes, shorter than its header", length))
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
	request, err := c.reply()
	switch {
	case err != nil:
		return err
	case isRaw(request.xid):
		return c.deliver(request)
	case length > maxLibraryReply:
		return c.dropReply()
	}
	return nil
}

// wrong logs which server has sent a reply that this session cannot use, and returns err. The
// connection then ends.
func (c *Conn) wrong(err error) error {
	c.wire.Logger.Warn("a server's answer cannot be used; connecting again", "server", c.RemoteAddr(), "error", err)
	return err
}

// event reads a watch event and passes it to the session, not to go-zookeeper, which has no
// watches.
func (c *Conn) event() error {
	if c.rest > maxReply {
		return c.wrong(fmt.Errorf("watch event of %d bytes", c.rest))
	}
	body := make([]byte, c.rest)
	if _, err := io.ReadFull(c.in, body); err != nil {
		return err
	}
	c.rest, c.unread = 0, nil
	c.wire.Counters.watchEvents.Add(1)
	c.wire.sawEvent(int64(binary.BigEndian.Uint64(c.head[lengthSize+4:])))
	d := jute.Decoder{Bytes: body}
	kind, _, path := Event(d.Int32()), d.Int32(), d.String()
	if d.Err != nil {
		return c.wrong(fmt.Errorf("watch event: %w", d.Err))
	}
	c.wire.Fired(kind, path)
	return nil
}

// reply records the answer whose header is in head, and returns its request. It zeroes the zxid in
// the header: go-zookeeper would store it in a field that another goroutine reads without
// synchronization. After a reply to a request that was not sent, no later one can be trusted.
func (c *Conn) reply() (request sent, _ error) {
	body := c.head[lengthSize:]
	xid := int32(binary.BigEndian.Uint32(body))
	zxid, code := int64(binary.BigEndian.Uint64(body[4:])), Code(binary.BigEndian.Uint32(body[12:]))
	c.mu.Lock()
	defer c.mu.Unlock()
	at := slices.IndexFunc(c.pending, func(s sent) bool { return s.xid == xid })
	if at < 0 {
		return request, c.wrong(fmt.Errorf("answer to request %d, which was not sent", xid))
	}
	if c.undecided(code) {
		return request, c.wrong(fmt.Errorf("ClickHouse Keeper does not know the outcome of a request: %w", code))
	}
	request = c.pending[at]
	c.answered(at)
	proof := request.proof
	if code != 0 { // a server may return an error without asking the leader
		proof = lease.Proof{}
	}
	c.evidence.Answered(c.wire.Lease, request.at, proof)
	if request.op == opClose {
		if code != 0 {
			return request, c.wrong(fmt.Errorf("the session is not closed: %w", code))
		}
		c.wire.setClosed()
	}
	if zxid > 0 { // an answer without a transaction has 0 or -1
		c.wire.saw(zxid)
	}
	binary.BigEndian.PutUint64(body[4:], 0)
	return request, nil
}

// answered removes a request from pending, and clears its slot, so that the batch can be freed. A
// server answers in order, so the request is the first, or one of the first if several goroutines
// have sent requests at the same time. Moving the thousands behind it for each answer would make the
// answers late, and a late answer looks like a dead server.
func (c *Conn) answered(i int) {
	const few = 32
	c.waiting -= c.pending[i].size
	if len(c.pending) <= few {
		c.pending = slices.Delete(c.pending, i, i+1)
		return
	}
	copy(c.pending[1:i+1], c.pending[:i])
	c.pending[0] = sent{}
	c.pending = c.pending[1:]
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
