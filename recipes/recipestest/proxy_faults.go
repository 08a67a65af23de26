package recipestest

import (
	"fmt"
	"time"
)

// gate passes bytes on, or holds them.
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

func (p *proxy) held(g *gate) <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return g.held
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

// sever drops the session's connection and accepts no other.
func (p *proxy) sever(session int64) {
	p.with(session, func(s *passage) { s.refused = true })
	p.cut(session)
}

// holdReplies passes requests on, and holds replies.
func (p *proxy) holdReplies(session int64) { p.with(session, func(s *passage) { s.down.hold() }) }

// freeze holds everything in both directions, and drops nothing.
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

// expire ends a session at the servers without its client. It takes the session
// over with its id and password, and closes it. The client reconnects at once, and
// finds the session expired.
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
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
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
