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
)

// conn is one client connection. The caller of ServeConn reads, a second goroutine
// writes. Output is queued without bound, so that a client that does not read does not
// delay others.
type conn struct {
	srv       *Server
	number    int64     // from 1, in the order of arrival
	follower  *Follower // nil for one to the leader
	nc        net.Conn
	sess      *session   // set once by the handshake, before the first request
	who       []identity // guarded by the server's mutex
	gone      bool       // likewise: the connection has ended
	closed    chan struct{}
	closeOnce sync.Once

	mu      sync.Mutex
	out     []output
	blocked bool // the writer waits, or is about to, before it writes on
	mute    bool // discard output: for the client the connection is lost
	last    bool // close when the queue is empty
	pending chan struct{}
}

// output is bytes to write, after an optional wait.
type output struct {
	hold <-chan struct{}
	b    []byte
}

// ServeConn serves one client until the connection ends, and closes nc. It needs no
// real socket: a [net.Pipe] is enough.
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
	return "127.0.0.1" // a pipe has no address, and is local
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

// readBody allocates at most 64 KiB by the announced length. A longer packet grows as
// its bytes come in, so that a client cannot make the server allocate what it does not
// send.
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
