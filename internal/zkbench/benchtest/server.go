package benchtest

import (
	"context"
	"fmt"
	"sync"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// Defect is a way to be broken.
type Defect int

const (
	// Sound is not broken.
	Sound Defect = iota
	// TwoHolders grants the second in line together with the first.
	TwoHolders
	// ShrinkingTokens gives every grant a smaller token than the one before.
	ShrinkingTokens
)

// Server keeps lines by path. The zero Server is sound and ready for use.
type Server struct {
	Defect Defect

	mu       sync.Mutex
	zxid     recipes.Token
	sessions int64
	lines    map[string][]*contender
}

// contender stands in a line. What it has is guarded by the server's mutex.
type contender struct {
	session  *session
	path     string
	znode    string
	token    recipes.Token
	strategy recipes.Strategy
	granted  chan struct{} // closed when it is its turn
	holds    bool
}

// Open is a recipes.Opener.
func (s *Server) Open(ctx context.Context, cfg recipes.SessionConfig) (recipes.Session, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sessions++
	timeout := cfg.SessionTimeout
	if timeout == 0 {
		timeout = recipes.DefaultSessionTimeout
	}
	return &session{server: s, id: s.sessions, timeout: timeout, lost: make(chan struct{})}, nil
}

// Break gives the server a defect from now on.
func (s *Server) Break(d Defect) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Defect = d
}

// Waiting returns how many stand in line at path, the holder included.
func (s *Server) Waiting(path string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.lines[path])
}

// Sessions returns how many sessions were opened so far.
func (s *Server) Sessions() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sessions
}

// join puts a contender at the end of the line. It costs one write and one read
// of the whole line, and another read to watch if there is somebody ahead.
func (s *Server) join(ss *session, path string, strategy recipes.Strategy) (*contender, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lines == nil {
		s.lines = map[string][]*contender{}
	}
	s.zxid++
	c := &contender{
		session: ss, path: path, strategy: strategy, granted: make(chan struct{}),
		znode: fmt.Sprintf("%s/%010d", path, s.zxid), token: s.zxid,
	}
	if s.Defect == ShrinkingTokens {
		c.token = 1<<40 - s.zxid
	}
	position := len(s.lines[path])
	s.lines[path] = append(s.lines[path], c)
	ss.count(func(n *recipes.Stats) { n.Writes++ })
	ss.countListing(position + 1)
	if position > 0 {
		ss.countRead()
	}
	s.grant(path)
	return c, position
}

// leave takes a contender out of its line and wakes whoever its strategy has
// watching. It reports whether it was there.
func (s *Server) leave(c *contender) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	line := s.lines[c.path]
	for i, other := range line {
		if other != c {
			continue
		}
		line = append(line[:i:i], line[i+1:]...)
		s.lines[c.path] = line
		c.session.count(func(n *recipes.Stats) { n.Writes++ })
		s.wake(line, i)
		s.grant(c.path)
		return true
	}
	return false
}

// forget takes the contenders of a session that has ended out of their lines.
func (s *Server) forget(ss *session) {
	s.mu.Lock()
	var gone []*contender
	for _, line := range s.lines {
		for _, c := range line {
			if c.session == ss {
				gone = append(gone, c)
			}
		}
	}
	s.mu.Unlock()
	for _, c := range gone {
		s.leave(c)
	}
}

// wake counts what a departure from place i costs those who are still in line.
func (s *Server) wake(line []*contender, i int) {
	for j, other := range line {
		watched := i == j
		if other.strategy == recipes.Herd {
			watched = i == 0
		}
		if !watched {
			continue
		}
		other.session.count(func(n *recipes.Stats) { n.WatchEvents++ })
		other.session.countListing(len(line))
		if j > 0 {
			other.session.countRead()
		}
	}
}

// grant gives the first in line its turn.
func (s *Server) grant(path string) {
	holders := 1
	if s.Defect == TwoHolders {
		holders = 2
	}
	for _, c := range s.lines[path][:min(holders, len(s.lines[path]))] {
		if !c.holds {
			c.holds = true
			close(c.granted)
		}
	}
}
