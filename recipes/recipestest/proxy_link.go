package recipestest

import (
	"net"
	"sync"
)

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

// join gives the link its server, unless it has been closed.
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
