package zkserver

import (
	"net"
	"time"
)

// Follower is a second server of the same ensemble, whose leader the [Server] is. It
// differs in what a client can tell:
//
//   - It answers pings and reads by itself. The leader hears that a session is
//     alive when it asks for that, every half tick, and when the session is resumed.
//   - It can be cut off from the leader. Then it goes on answering pings and reads,
//     and passes on neither writes and syncs nor what has happened at the leader.
//     (Reads show the leader's present state all the same, and a session cannot be
//     resumed with it; no test of ours needs that.)
//   - It can die with what it has not told the leader.
type Follower struct {
	srv *Server

	// Guarded by the server's mutex.
	heard   map[*session]struct{} // since the leader asked
	queues  map[*session]*queue
	askAt   time.Time     // when the leader asks next
	cut     chan struct{} // non-nil while cut off, closed when that ends
	backlog []func()      // what happened at the leader since, in order
}

// Follower returns a new follower of the server.
func (s *Server) Follower() *Follower {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := &Follower{srv: s, heard: make(map[*session]struct{}), queues: make(map[*session]*queue), askAt: time.Now().Add(s.cfg.TickTime / 2)}
	s.followers = append(s.followers, f)
	s.wakeKeeper()
	return f
}

// ServeConn is [Server.ServeConn] for a client that has connected to the follower.
func (f *Follower) ServeConn(nc net.Conn) { f.srv.serve(nc, f) }

// Crash drops the follower's connections, and what it has not told the leader.
func (f *Follower) Crash() {
	f.srv.mu.Lock()
	defer f.srv.mu.Unlock()
	clear(f.heard)
	for c := range f.srv.conns {
		if c.follower == f {
			f.srv.detach(c).abort()
		}
	}
}

// CutOff separates the follower from its leader.
func (f *Follower) CutOff() {
	f.srv.mu.Lock()
	defer f.srv.mu.Unlock()
	if f.cut == nil {
		f.cut = make(chan struct{})
	}
}

// Deliver has the follower learn the first thing that has happened at the leader
// since it was cut off. It reports false when there is nothing left.
func (f *Follower) Deliver() bool {
	f.srv.mu.Lock()
	defer f.srv.mu.Unlock()
	if len(f.backlog) == 0 {
		return false
	}
	happened := f.backlog[0]
	f.backlog = f.backlog[1:]
	happened()
	return true
}

// Heal ends the separation: the follower learns all that has happened, and passes
// on what was held back.
func (f *Follower) Heal() {
	for f.Deliver() {
	}
	f.srv.mu.Lock()
	defer f.srv.mu.Unlock()
	if f.cut != nil {
		close(f.cut)
		f.cut = nil
	}
}

// pipeline is where the requests of the connection's session wait for each other:
// each server has one of its own.
func (c *conn) pipeline() *queue {
	if c.follower == nil {
		return &c.sess.queue
	}
	c.srv.mu.Lock()
	defer c.srv.mu.Unlock()
	q := c.follower.queues[c.sess]
	if q == nil {
		q = new(queue)
		c.follower.queues[c.sess] = q
	}
	return q
}

// touch notes that the client of a connection is alive.
func (c *conn) touch() {
	if c.follower != nil {
		c.follower.heard[c.sess] = struct{}{}
	} else {
		c.sess.touch()
	}
}

// behind reports whether the connection is to a follower that is cut off.
func (c *conn) behind() bool { return c.follower != nil && c.follower.cut != nil }

// later has something that has happened at the leader happen for the client of a
// connection: at once, or when its follower learns of it.
func (c *conn) later(happen func()) {
	if c.behind() {
		c.follower.backlog = append(c.follower.backlog, happen)
	} else {
		happen()
	}
}

// waits returns what a request has to wait for that only the leader can answer.
func (c *conn) waits(op Op) <-chan struct{} {
	if !op.writes() && op != OpSync && op != OpCloseSession {
		return nil
	}
	c.srv.mu.Lock()
	defer c.srv.mu.Unlock()
	if !c.behind() {
		return nil
	}
	return c.follower.cut
}

// ask has the leader hear from the followers, where that is due, and returns when
// it asks next, or the zero time when there is no follower.
func (s *Server) ask(now time.Time) (next time.Time) {
	for _, f := range s.followers {
		for !now.Before(f.askAt) {
			f.askAt = f.askAt.Add(s.cfg.TickTime / 2)
			if f.cut != nil {
				continue
			}
			for sess := range f.heard {
				sess.touch()
			}
			clear(f.heard)
		}
		if next.IsZero() || f.askAt.Before(next) {
			next = f.askAt
		}
	}
	return next
}
