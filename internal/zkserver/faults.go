package zkserver

import (
	"fmt"
	"sync/atomic"
	"time"
)

// Request is a request as a fault function sees it.
type Request struct {
	// N counts requests from 1 since the last SetFault. Pings and session handshakes
	// are not counted.
	N         int64
	SessionID int64
	Op        Op
	Path      string // of a multi: the path of its first part
}

// Fault is what goes wrong with one request. The zero value is no fault. Fields can be
// combined. If two of them contradict each other, the first in this list applies.
type Fault struct {
	// Hold delays the request until the channel is closed. Later requests of the same
	// session wait behind it, even those of a later connection, as in ZooKeeper's pipeline.
	// Other sessions are not delayed. The session gets no answer, not even to pings, but
	// each packet of its client still keeps it alive. If the connection ends while the
	// request is held, the request is still executed, unless the session has ended.
	Hold <-chan struct{}
	// ExpireBefore expires the session instead of executing the request, and
	// closes the connection. A client that reconnects learns of the expiry.
	ExpireBefore bool
	// CloseBefore closes the connection instead of executing the request.
	CloseBefore bool
	// Throttle answers the request with THROTTLEDOP instead of executing it. A real
	// server does so to requests that have waited for too long.
	Throttle bool
	// DropReply executes and commits the request and then closes the
	// connection. Neither the reply nor any watch event that the request
	// caused on its own connection is sent.
	DropReply bool
	// HoldReply commits at once, but delays the reply and all later output of the
	// connection until the channel is closed.
	HoldReply <-chan struct{}
	// ExpireAfter expires the session after the reply.
	ExpireAfter bool
	// CloseAfter closes the connection after the reply.
	CloseAfter bool
}

type faultHook struct {
	decide func(Request) Fault
	n      atomic.Int64
}

// SetFault makes the server call f before it executes a request, except for pings and
// session handshakes. A nil f removes the function. Several goroutines may call f at the
// same time. f may call methods of the server.
func (s *Server) SetFault(f func(Request) Fault) {
	if f == nil {
		s.fault.Store(nil)
		return
	}
	s.fault.Store(&faultHook{decide: f})
}

func (s *Server) decide(t task) Fault {
	hook := s.fault.Load()
	if hook == nil || t.call.op == OpPing {
		return Fault{}
	}
	r := Request{N: hook.n.Add(1), SessionID: t.c.sess.id, Op: t.call.op, Path: t.call.path}
	if len(t.call.parts) > 0 {
		r.Path = t.call.parts[0].path
	}
	return hook.decide(r)
}

// ExpireSession ends a session as if its client had been silent for its timeout.
// It returns false for an unknown session.
func (s *Server) ExpireSession(id int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	sess := s.sessions[id]
	if sess == nil {
		return false
	}
	s.expire(sess)
	return true
}

// CloseConnection drops the connection of a session, but not the session. It returns
// false if the session is unknown or has no connection.
func (s *Server) CloseConnection(sessionID int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	sess := s.sessions[sessionID]
	if sess == nil || sess.conn == nil {
		return false
	}
	s.detach(sess.conn).abort()
	return true
}

// CloseAllConnections drops every connection, but no session.
func (s *Server) CloseAllConnections() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.connections() {
		s.detach(c).abort()
	}
}

// RefuseConnections makes the server close new connections at once, as if it were
// unreachable, or ends that. Existing connections stay.
func (s *Server) RefuseConnections(refuse bool) { s.refuse.Store(refuse) }

// SetMaxSessionTimeout changes [Config.MaxSessionTimeout], like a rolling restart with
// another maxSessionTimeout. It applies to a session when it is next opened or resumed.
func (s *Server) SetMaxSessionTimeout(limit time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cfg.MaxSessionTimeout = limit
}

// Freeze stops the server like SIGSTOP, or continues it. A frozen server accepts
// connections, but executes, answers and expires nothing. Pings get no answer either.
// When it continues, sessions whose timeout has passed expire first, even if their
// requests wait in a buffer. A real server may do the same.
func (s *Server) Freeze(freeze bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case freeze && s.frozen == nil:
		s.frozen = make(chan struct{})
	case !freeze && s.frozen != nil:
		s.expireOverdue(time.Now())
		close(s.frozen)
		s.frozen = nil
	}
}

// SetClock sets by how much the times of later transactions are ahead of this process's clock, as
// after a change of the leader's clock. Sessions expire as before.
func (s *Server) SetClock(ahead time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ahead = ahead
}

// SetSequence sets the number of the next sequential znode below path. After 2147483647
// comes -2147483648, printed as Java's %010d prints it, as ZooKeeper documents. 3.8.0
// itself gets stuck instead: DataTree.createNode keeps the larger of the old and the new
// counter, so the name of every further sequential create below that parent exists
// already. TestTheEndOfTheNumbersOnARealServer of package line shows it.
func (s *Server) SetSequence(path string, next int32) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.tree.get(path)
	if n == nil {
		return fmt.Errorf("zkserver: set sequence of %s: no such node", path)
	}
	n.cversion = next
	return nil
}

// SetVersion sets the version of a znode's data, as if it had been changed that many
// times. After 2147483647 comes -2147483648.
func (s *Server) SetVersion(path string, version int32) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.tree.get(path)
	if n == nil {
		return fmt.Errorf("zkserver: set version of %s: no such node", path)
	}
	n.version = version
	return nil
}
