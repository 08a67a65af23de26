package session

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"time"

	"github.com/go-zookeeper/zk"
)

// request is one that the session sends itself, past go-zookeeper, which cannot
// send several in one write, nor create2, whose reply has the new znode's
// record, nor setWatches.
type request struct {
	op   int32
	body []byte
}

// reply is the server's answer to a request.
type reply struct {
	code int32 // 0, or the error
	body []byte
}

func (r reply) err() error {
	if r.code == 0 {
		return nil
	}
	if err, ok := codes[r.code]; ok {
		return err
	}
	return fmt.Errorf("error code %d", r.code)
}

// codes are the errors that go-zookeeper has names for; it does not export the
// numbers.
var codes = map[int32]error{
	-8:            zk.ErrBadArguments,
	-101:          zk.ErrNoNode,
	-102:          zk.ErrNoAuth,
	-103:          zk.ErrBadVersion,
	-108:          zk.ErrNoChildrenForEphemerals,
	-110:          zk.ErrNodeExists,
	-111:          zk.ErrNotEmpty,
	-112:          zk.ErrSessionExpired,
	-114:          zk.ErrInvalidACL,
	-115:          zk.ErrAuthFailed,
	-118:          zk.ErrSessionMoved,
	codeOversized: errOversized,
}

// maxReply bounds, in bytes, what a reply to the session's own request may be.
// It is read into memory of its own, so it can be far more than
// Config.MaxPacket, which go-zookeeper allocates twice for each session.
const maxReply = 64 << 20

// exchange sends requests in one write on the present connection, and returns
// their replies: a server answers the requests of a connection in order. The
// error is that of the connection (see lostConnection), of ctx, or the reason why
// the session was lost; what the server thinks of a request is in its reply.
func (s *Session) exchange(ctx context.Context, requests ...request) ([]reply, error) {
	b, err := s.sendOn(s.dialer.connection(), requests)
	if err != nil {
		return nil, err
	}
	return b.await(ctx, s)
}

// sendOn sends requests in one write.
func (s *Session) sendOn(c *conn, requests []request) (*batch, error) {
	s.mu.Lock()
	over := s.over
	s.mu.Unlock()
	if over {
		return nil, s.Err()
	}
	if c == nil {
		return nil, zk.ErrNoServer
	}
	return c.send(requests)
}

// batch is requests that were sent together.
type batch struct {
	conn     *conn
	replies  []reply
	answered chan struct{} // closed when all replies are there
	missing  int           // replies; of the goroutine that reads
}

// await returns the replies, as exchange does. It may be called again after ctx
// has ended.
func (b *batch) await(ctx context.Context, s *Session) ([]reply, error) {
	select {
	case <-b.answered:
		return b.replies, nil
	case <-b.conn.closed:
		return nil, zk.ErrConnectionClosed
	case <-s.Lost():
		return nil, s.Err()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// attempt is requests that are sent in the caller's goroutine, of which the outcome
// may be awaited in another.
type attempt struct {
	session  *Session
	requests []request

	sent        *batch
	failed      error // what became of sending it
	connections int   // when it was sent
}

// begin sends them when the session is connected. Where that fails, some of it
// may have been sent.
func (a *attempt) begin(ctx context.Context) {
	if _, a.failed = a.session.Connected(ctx); a.failed != nil {
		return
	}
	now, _, _ := a.session.status.Get()
	a.connections = now.connections
	a.sent, a.failed = a.session.sendIdentified(a.requests)
}

// await returns the replies to what was begun.
func (a *attempt) await(ctx context.Context) ([]reply, error) {
	if a.failed != nil {
		return nil, a.failed
	}
	return a.sent.await(ctx, a.session)
}

// rawXids keeps the xids of the session's own requests apart from
// go-zookeeper's, which are positive, and from those with a meaning, which are
// small negative ones.
const rawXids = -1 << 31

func isRaw(xid int32) bool { return xid < rawXids/2 }

// send writes the requests as one piece.
func (c *conn) send(requests []request) (*batch, error) {
	b := &batch{conn: c, replies: make([]reply, len(requests)), answered: make(chan struct{}), missing: len(requests)}
	var e encoder
	c.mu.Lock()
	if !c.established || !c.trusted {
		c.mu.Unlock()
		return nil, zk.ErrNoServer
	}
	now := time.Now()
	for i, r := range requests {
		c.rawXid = (c.rawXid + 1) & (1<<30 - 1)
		xid := rawXids + c.rawXid
		e.i32(int32(8 + len(r.body)))
		e.i32(xid)
		e.i32(r.op)
		e.b = append(e.b, r.body...)
		c.pending = append(c.pending, sent{xid: xid, op: r.op, at: now, batch: b, index: i})
		c.wire.counters.request(r.op)
	}
	c.mu.Unlock()
	c.wire.counters.requestBytes.Add(int64(len(e.b)))
	if err := c.write(e.b); err != nil {
		c.Close() // some of it may have been sent
		return nil, err
	}
	return b, nil
}

// write sends bytes that belong together. Their deadline is set here: whoever
// sets one from outside does not know who writes.
func (c *conn) write(b []byte) error {
	c.out.Lock()
	defer c.out.Unlock()
	if timeout := c.wire.timeout.Load(); timeout > 0 && c.isEstablished() {
		if err := c.Conn.SetWriteDeadline(time.Now().Add(time.Duration(timeout * 2 / 3))); err != nil {
			return &connError{err}
		}
	}
	if _, err := c.Conn.Write(b); err != nil {
		return &connError{err}
	}
	return nil
}

// deliver reads the rest of the reply whose header is in head and gives it to
// who waits for it.
func (c *conn) deliver(request sent) error {
	r := reply{code: int32(binary.BigEndian.Uint32(c.head[lengthSize+12:]))}
	if c.rest > maxReply {
		r.code = codeOversized
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
	if request.op == opAuth && r.code != 0 {
		c.wire.refused.Store(true) // the server ends the connection now
	}
	if b := request.batch; b != nil {
		b.replies[request.index] = r
		if b.missing--; b.missing == 0 {
			close(b.answered)
		}
	}
	return nil
}

// Close closes the connection and tells who waits for replies.
func (c *conn) Close() error {
	c.closeOnce.Do(func() { close(c.closed) })
	return c.Conn.Close()
}
