package zkserver

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"sync"
	"time"
)

// conn is one client connection: the caller of ServeConn reads, a second
// goroutine writes. Output is queued without bound, so that a client that does
// not read delays nobody.
type conn struct {
	srv    *Server
	nc     net.Conn
	sess   *session   // set once by the handshake, before the first request
	who    []identity // guarded by the server's mutex
	closed chan struct{}
	once   sync.Once

	mu      sync.Mutex
	out     []output
	mute    bool // discard what comes, the connection is as good as lost
	last    bool // close when the queue is empty
	pending chan struct{}
}

// output is bytes to write, after an optional wait.
type output struct {
	hold <-chan struct{}
	b    []byte
}

// ServeConn speaks with one client until the connection ends, and closes c.
// It needs no real socket: a [net.Pipe] will do.
func (s *Server) ServeConn(nc net.Conn) {
	c := &conn{srv: s, nc: nc, closed: make(chan struct{}), pending: make(chan struct{}, 1)}
	c.who = []identity{{"ip", remoteIP(nc)}}
	if !s.enlist(c) {
		_ = nc.Close()
		return
	}
	defer s.delist(c)
	var writer sync.WaitGroup
	writer.Go(c.writeLoop)
	if err := c.readLoop(); errors.Is(err, errFinished) {
		// Closing a socket with unread input would reset it, and the client
		// might never see the last reply.
		_, _ = io.Copy(io.Discard, nc)
	}
	c.abort()
	writer.Wait()
}

func remoteIP(nc net.Conn) string {
	if a := nc.RemoteAddr(); a != nil {
		if ap, err := netip.ParseAddrPort(a.String()); err == nil {
			return ap.Addr().Unmap().String()
		}
	}
	return "127.0.0.1" // a pipe has no address, and is as local as it gets
}

// errFinished ends the reader of a connection whose writer will close it after
// the last reply.
var errFinished = errors.New("zkserver: connection is being closed")

func (c *conn) readLoop() error {
	r := bufio.NewReaderSize(c.nc, 2048)
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return err
	}
	if answer, ok := c.srv.word(string(head[:])); ok {
		c.send([]byte(answer))
		c.finish()
		return errFinished
	}
	body, err := c.readBody(r, head)
	if err != nil {
		return err
	}
	if err := c.handshake(body); err != nil {
		return err
	}
	for {
		if _, err := io.ReadFull(r, head[:]); err != nil {
			return err
		}
		if body, err = c.readBody(r, head); err != nil {
			return err
		}
		if err := c.receive(body); err != nil {
			return err
		}
	}
}

var errPacketLength = errors.New("zkserver: packet length out of range")

// readBody trusts the length only up to 64 KiB; a longer packet grows as its
// bytes come in, so a stranger cannot make the server allocate what he does
// not send.
func (c *conn) readBody(r io.Reader, head [4]byte) ([]byte, error) {
	n := int32(binary.BigEndian.Uint32(head[:]))
	if n < 0 || int(n) > c.srv.cfg.MaxPacket {
		return nil, errPacketLength
	}
	c.srv.traffic.in.Add(int64(n) + 4)
	c.srv.traffic.received.Add(1)
	if n <= 64<<10 {
		b := make([]byte, n)
		_, err := io.ReadFull(r, b)
		return b, err
	}
	var buf bytes.Buffer
	_, err := io.CopyN(&buf, r, int64(n))
	return buf.Bytes(), err
}

// handshake answers the connect request. A refused session is told so by an
// answer with session 0, and the connection ends.
func (c *conn) handshake(body []byte) error {
	r, err := decodeConnect(body)
	if err != nil {
		return err
	}
	s := c.srv
	if !s.lockThawed() {
		return net.ErrClosed
	}
	defer s.mu.Unlock()
	if r.lastZxid > s.tree.zxid {
		// The client has seen the future: it belongs to another server.
		return errors.New("zkserver: client is ahead of this server")
	}
	sess := s.open(c, r)
	e := encoder{b: make([]byte, 4, 64)}
	e.i32(0)
	if sess == nil {
		e.i32(0)
		e.i64(0)
		e.buffer(make([]byte, 16))
	} else {
		c.sess = sess
		e.i32(int32(sess.timeout / time.Millisecond))
		e.i64(sess.id)
		e.buffer(s.password(sess.id))
	}
	if r.hasRO {
		e.bool(false)
	}
	binary.BigEndian.PutUint32(e.b, uint32(len(e.b)-4))
	c.send(e.b)
	if sess == nil {
		c.finish()
		return errFinished
	}
	return nil
}

// send queues bytes for the writer.
func (c *conn) send(b []byte) {
	c.mu.Lock()
	if c.mute || c.last {
		c.mu.Unlock()
		return
	}
	c.srv.traffic.out.Add(int64(len(b)))
	c.srv.traffic.sent.Add(1)
	if n := len(c.out); n > 0 {
		c.out[n-1].b = append(c.out[n-1].b, b...)
	} else {
		c.out = append(c.out, output{b: b})
	}
	c.mu.Unlock()
	c.poke()
}

// holdOutput makes everything that is sent from now on wait.
func (c *conn) holdOutput(until <-chan struct{}) {
	c.mu.Lock()
	c.out = append(c.out, output{hold: until})
	c.mu.Unlock()
}

// silence discards everything that is sent from now on.
func (c *conn) silence() {
	c.mu.Lock()
	c.mute = true
	c.mu.Unlock()
}

// finish closes the connection after what is already queued was written.
func (c *conn) finish() {
	c.mu.Lock()
	c.last = true
	c.mu.Unlock()
	c.poke()
}

func (c *conn) finishing() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last || c.mute
}

// abort closes the connection at once.
func (c *conn) abort() {
	c.once.Do(func() {
		close(c.closed)
		_ = c.nc.Close()
	})
}

func (c *conn) poke() {
	select {
	case c.pending <- struct{}{}:
	default:
	}
}

// writeLoop writes until the connection is closed.
func (c *conn) writeLoop() {
	defer c.abort()
	for {
		next, ok := c.nextOutput()
		if !ok {
			return
		}
		if next.hold != nil {
			select {
			case <-next.hold:
			case <-c.closed:
				return
			}
		}
		if !c.thawed() {
			return
		}
		if _, err := c.nc.Write(next.b); err != nil {
			return
		}
	}
}

// nextOutput waits for output. It returns false when the connection is to end.
func (c *conn) nextOutput() (output, bool) {
	for {
		c.mu.Lock()
		if len(c.out) > 0 {
			next := c.out[0]
			c.out[0] = output{}
			c.out = c.out[1:]
			c.mu.Unlock()
			return next, true
		}
		c.out = nil
		last := c.last
		c.mu.Unlock()
		if last {
			return output{}, false
		}
		select {
		case <-c.pending:
		case <-c.closed:
			return output{}, false
		}
	}
}

// thawed waits out a freeze.
func (c *conn) thawed() bool {
	for {
		c.srv.mu.Lock()
		thaw := c.srv.frozen
		c.srv.mu.Unlock()
		if thaw == nil {
			return true
		}
		select {
		case <-thaw:
		case <-c.closed:
			return false
		}
	}
}

// sendEvent queues a watch event. The caller holds the server's mutex, which
// is what puts the event before the reply of any request that sees the change.
func (c *conn) sendEvent(e eventType, path string) {
	const connected = 3
	f := newFrame()
	f.i32(int32(e))
	f.i32(connected)
	f.str(path)
	c.send(f.seal(-1, -1, codeOK))
	c.srv.counters.WatchEvents++
}
