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

	"github.com/zkrecipes/zkrecipes/internal/jute"
)

// conn is one client connection. The goroutine that called ServeConn reads, and a second
// one writes. The output queue has no limit, so a client that does not read does not delay
// the others.
type conn struct {
	srv       *Server
	number    int64     // from 1, in the order of arrival
	follower  *Follower // nil if connected to the leader
	nc        net.Conn
	sess      *session   // set once by the handshake, before the first request
	moves     int        // moves of sess when it was opened on this connection
	who       []identity // guarded by the server's mutex
	gone      bool       // guarded by the server's mutex: the connection has ended
	closed    chan struct{}
	closeOnce sync.Once

	mu      sync.Mutex
	out     []output
	blocked bool // the writer waits for a hold, or will before it writes more
	mute    bool // discard output: the client sees a lost connection
	last    bool // close when the queue is empty
	pending chan struct{}
}

// output is bytes to write. If hold is set, the writer first waits for it to close.
type output struct {
	hold <-chan struct{}
	b    []byte
}

// ServeConn serves one client until the connection ends, and closes nc. One end of a
// [net.Pipe] is enough: it needs no socket.
func (s *Server) ServeConn(nc net.Conn) { s.serve(nc, nil) }

func (s *Server) serve(nc net.Conn, f *Follower) {
	c := &conn{srv: s, follower: f, nc: nc, closed: make(chan struct{}), pending: make(chan struct{}, 1)}
	c.who = []identity{{"ip", remoteIP(nc)}}
	if !s.enlist(c) {
		_ = nc.Close()
		return
	}
	defer s.delist(c)
	var writer sync.WaitGroup
	writer.Go(c.writeLoop)
	if err := c.readLoop(); errors.Is(err, errFinished) {
		// Closing a socket with unread input resets the connection, and the client
		// may never see the last reply.
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
	return "127.0.0.1" // a pipe has no address, and is local
}

// errFinished ends the reader of a connection. The writer closes the connection after the
// last reply.
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

// readBody allocates at most 64 KiB before the bytes arrive. For a longer packet the buffer
// grows with the bytes received, so a client cannot make the server allocate memory for
// bytes that it never sends.
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

// handshake answers the connect request. If the session is refused, the answer has session
// id 0, and the connection ends.
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
	if c.behind() && (!c.follower.late || s.profile.forgets) { // only the leader creates and revalidates sessions
		return c.refuse(r)
	}
	if r.lastZxid > c.known().zxid && !s.profile.forgets {
		return errors.New("zkserver: client has seen a later transaction than this server")
	}
	sess := s.open(c, r)
	if sess == nil {
		c.greet(r, 0, 0, 0, make([]byte, 16))
		c.finish()
		return errFinished
	}
	c.sess = sess
	c.greet(r, 0, sess.timeout, sess.id, s.password(sess.id))
	return nil
}

// refuse ends a connection to a server that cannot open a session. Keeper tells its own
// clients by a protocol version, and gives the session -1.
func (c *conn) refuse(r connectRequest) error {
	if !c.srv.profile.forgets {
		return errors.New("zkserver: the follower does not reach its leader")
	}
	c.greet(r, 42, c.srv.bound(r.timeout), -1, nil)
	c.finish()
	return errFinished
}

// greet answers the connect request. A server whose sessions cannot be resumed has no
// passwords, and no mode that only reads.
func (c *conn) greet(r connectRequest, protocol int32, timeout time.Duration, id int64, password []byte) {
	forgets := c.srv.profile.forgets
	if forgets {
		password = make([]byte, 16)
	}
	e := jute.Encoder{Bytes: make([]byte, 4, 64)}
	e.Int32(protocol)
	e.Int32(int32(timeout / time.Millisecond))
	e.Int64(id)
	e.Buffer(password)
	if r.hasRO && !forgets {
		e.Bool(false)
	}
	binary.BigEndian.PutUint32(e.Bytes, uint32(len(e.Bytes)-4))
	c.send(e.Bytes)
}
