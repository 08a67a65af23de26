package recipestest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// proxy stands between sessions and servers and does to the connections of each
// session, known by its id, what a bad network would.
type proxy struct {
	addr     string
	listener net.Listener
	work     sync.WaitGroup

	mu       sync.Mutex
	closed   bool
	servers  []string
	next     int
	links    map[*link]struct{}
	sessions map[int64]*passage
}

// passage is what the proxy knows of a session and lets through for it.
type passage struct {
	password []byte
	timeout  int32
	refused  bool // no connection is let through
	up, down gate // to the server, to the client
}

// gate lets bytes through, or holds them.
type gate struct {
	held chan struct{} // nil, or closed when it is opened again
}

func (g *gate) hold() {
	if g.held == nil {
		g.held = make(chan struct{})
	}
}

func (g *gate) open() {
	if g.held != nil {
		close(g.held)
		g.held = nil
	}
}

// link is one connection through the proxy.
type link struct {
	client, server net.Conn
	session        int64
	done           chan struct{}
	once           sync.Once
}

func (l *link) close() {
	l.once.Do(func() {
		close(l.done)
		l.client.Close()
		if l.server != nil {
			l.server.Close()
		}
	})
}

func newProxy(servers []string) (*proxy, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &proxy{
		addr:     listener.Addr().String(),
		listener: listener,
		servers:  servers,
		links:    make(map[*link]struct{}),
		sessions: make(map[int64]*passage),
	}
	p.work.Go(p.accept)
	return p, nil
}

func (p *proxy) close() {
	p.mu.Lock()
	p.closed = true
	p.listener.Close()
	for l := range p.links {
		l.close()
	}
	p.mu.Unlock()
	p.work.Wait()
}

func (p *proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		l := &link{client: client, done: make(chan struct{})}
		p.mu.Lock()
		if p.closed {
			l.close()
		} else {
			p.links[l] = struct{}{}
			p.work.Go(func() { p.serve(l) })
		}
		p.mu.Unlock()
	}
}

func (p *proxy) serve(l *link) {
	defer func() {
		l.close()
		p.mu.Lock()
		delete(p.links, l)
		p.mu.Unlock()
	}()
	request, err := readFrame(l.client)
	if err != nil || !p.admits(requestedSession(request)) {
		return
	}
	if known := p.passage(requestedSession(request)); known != nil {
		if !p.passes(l, &known.up) || !p.passes(l, &known.down) {
			return
		}
	}
	server, err := p.dial()
	if err != nil {
		return
	}
	if !p.join(l, server) {
		server.Close()
		return
	}
	if _, err := server.Write(request); err != nil {
		return
	}
	reply, err := readFrame(server)
	if err != nil {
		return
	}
	passage := p.enrol(l, reply)
	if passage == nil {
		return
	}
	if _, err := l.client.Write(reply); err != nil {
		return
	}
	var pumps sync.WaitGroup
	pumps.Go(func() { p.pump(l, server, l.client, &passage.up) })
	pumps.Go(func() { p.pump(l, l.client, server, &passage.down) })
	pumps.Wait()
}

// pump carries bytes until the link is closed, and closes it when it cannot.
func (p *proxy) pump(l *link, to, from net.Conn, g *gate) {
	defer l.close()
	buffer := make([]byte, 16<<10)
	for {
		n, err := from.Read(buffer)
		if !p.passes(l, g) {
			return // what was held is gone with the connection
		}
		if n > 0 {
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// passes waits until the gate is open, and reports false if the link is closed
// before.
func (p *proxy) passes(l *link, g *gate) bool {
	for held := p.held(g); held != nil; held = p.held(g) {
		select {
		case <-held:
		case <-l.done:
			return false
		}
	}
	return true
}

func (p *proxy) passage(session int64) *passage {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.sessions[session]
}

func (p *proxy) held(g *gate) <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return g.held
}

func (p *proxy) admits(session int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	known := p.sessions[session]
	return known == nil || !known.refused
}

func (p *proxy) dial() (net.Conn, error) {
	var errs []error
	for range p.servers {
		p.mu.Lock()
		addr := p.servers[p.next%len(p.servers)]
		p.next++
		p.mu.Unlock()
		conn, err := net.DialTimeout("tcp", addr, time.Second)
		if err == nil {
			return conn, nil
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}

// join gives the link its server, unless it has been closed meanwhile.
func (p *proxy) join(l *link, server net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-l.done:
		return false
	default:
		l.server = server
		return true
	}
}

// enrol notes the session of a handshake's reply.
func (p *proxy) enrol(l *link, reply []byte) *passage {
	id, timeout, password, err := grantedSession(reply)
	if err != nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if id == 0 {
		return &passage{} // expired; the client is to learn of it
	}
	s := p.sessions[id]
	if s == nil {
		s = &passage{password: password, timeout: timeout}
		p.sessions[id] = s
	}
	if s.refused {
		return nil
	}
	l.session = id
	return s
}

// cut drops the session's connection; what the proxy holds of it is gone.
func (p *proxy) cut(session int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		if l.session == session {
			l.close()
		}
	}
}

// sever drops the session's connection and lets no other through.
func (p *proxy) sever(session int64) {
	p.with(session, func(s *passage) { s.refused = true })
	p.cut(session)
}

// holdReplies has the server hear the session and not the reverse.
func (p *proxy) holdReplies(session int64) { p.with(session, func(s *passage) { s.down.hold() }) }

// freeze lets nothing pass in either direction, and drops nothing.
func (p *proxy) freeze(session int64) {
	p.with(session, func(s *passage) {
		s.up.hold()
		s.down.hold()
	})
}

// restore ends what the methods above have begun.
func (p *proxy) restore(session int64) {
	p.with(session, func(s *passage) {
		s.refused = false
		s.up.open()
		s.down.open()
	})
}

func (p *proxy) with(session int64, f func(*passage)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.sessions[session]; s != nil {
		f(s)
	}
}

// expire ends a session at the servers without its client's doing: it takes the
// session over with its id and password, and closes it. Its client finds the
// session expired when it comes back, which it does at once.
func (p *proxy) expire(session int64) error {
	p.sever(session)
	defer p.restore(session)
	s := p.passage(session)
	if s == nil {
		return fmt.Errorf("session %#x did not come this way", session)
	}
	conn, err := p.dial()
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		return err
	}
	if _, err := conn.Write(resumeFrame(session, s.timeout, s.password)); err != nil {
		return err
	}
	reply, err := readFrame(conn)
	if err != nil {
		return err
	}
	if id, _, _, err := grantedSession(reply); err != nil || id != session {
		return fmt.Errorf("take session %#x over: got %#x, %v", session, id, err)
	}
	if _, err := conn.Write(closeFrame()); err != nil {
		return err
	}
	_, err = readFrame(conn)
	return err
}

// The handshake of ZooKeeper's protocol. All frames are given with the length
// that they start with.

func readFrame(r io.Reader) ([]byte, error) {
	head := make([]byte, 4)
	if _, err := io.ReadFull(r, head); err != nil {
		return nil, err
	}
	length := binary.BigEndian.Uint32(head)
	if length > 1<<20 {
		return nil, fmt.Errorf("frame of %d bytes", length)
	}
	frame := append(head, make([]byte, length)...)
	_, err := io.ReadFull(r, frame[4:])
	return frame, err
}

// requestedSession: length, protocol version, last zxid, timeout, session id.
func requestedSession(frame []byte) int64 {
	const at = 4 + 4 + 8 + 4
	if len(frame) < at+8 {
		return 0
	}
	return int64(binary.BigEndian.Uint64(frame[at:]))
}

// grantedSession: length, protocol version, timeout, session id, password.
func grantedSession(frame []byte) (id int64, timeout int32, password []byte, err error) {
	if len(frame) < 24 {
		return 0, 0, nil, fmt.Errorf("handshake of %d bytes", len(frame))
	}
	timeout = int32(binary.BigEndian.Uint32(frame[8:]))
	id = int64(binary.BigEndian.Uint64(frame[12:]))
	length := int(int32(binary.BigEndian.Uint32(frame[20:])))
	if length < 0 || len(frame) < 24+length {
		return 0, 0, nil, fmt.Errorf("password of %d bytes", length)
	}
	return id, timeout, frame[24 : 24+length], nil
}

func resumeFrame(session int64, timeout int32, password []byte) []byte {
	var b []byte
	b = binary.BigEndian.AppendUint32(b, 0) // protocol version
	b = binary.BigEndian.AppendUint64(b, 0) // last zxid seen
	b = binary.BigEndian.AppendUint32(b, uint32(timeout))
	b = binary.BigEndian.AppendUint64(b, uint64(session))
	b = binary.BigEndian.AppendUint32(b, uint32(len(password)))
	b = append(b, password...)
	b = append(b, 0) // not read-only
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...)
}

func closeFrame() []byte {
	const closeSession = -11
	frame := binary.BigEndian.AppendUint32(nil, 8)
	frame = binary.BigEndian.AppendUint32(frame, 1) // xid
	op := int32(closeSession)
	return binary.BigEndian.AppendUint32(frame, uint32(op))
}
