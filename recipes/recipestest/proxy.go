package recipestest

import (
	"errors"
	"net"
	"sync"
	"time"
)

// proxy is between sessions and servers. It does to the connections of each session,
// known by its id, what a bad network would.
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

// passage is what the proxy knows of a session, and how it passes its bytes on.
type passage struct {
	password []byte
	timeout  int32
	refused  bool // no connection is let through
	up, down gate // to the server, to the client
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

func (p *proxy) passage(session int64) *passage {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.sessions[session]
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

// The handshake of ZooKeeper's protocol. All frames are given with the length
// that they start with.
