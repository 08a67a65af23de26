package zkserver

import (
	"fmt"
	"sync/atomic"
	"time"
)

// Request is a request as a fault function sees it.
type Request struct {
	// N counts requests from 1, since the server was made or SetFault was last
	// called. Pings and session handshakes are not counted.
	N         int64
	SessionID int64
	Op        Op
	Path      string // of a multi: that of its first part
	Xid       int32
}

// Fault says what goes wrong with one request. The zero value is no fault. Fields can be
// combined. Of two that contradict each other, the first one here counts.
type Fault struct {
	// Hold delays the request until the channel is closed. Later requests of
	// the same session wait behind it, also those of a later connection, as
	// they would in ZooKeeper's pipeline. Other sessions go on. What the client
	// sends keeps the session alive, though nothing is answered, not even pings.
	// A request whose connection ends while it is held is still executed, if its
	// session lives.
	Hold <-chan struct{}
	// ExpireBefore expires the session instead of executing the request, and
	// closes the connection. A client that connects again is told of the expiry.
	ExpireBefore bool
	// CloseBefore closes the connection instead of executing the request.
	CloseBefore bool
	// Throttle answers the request with THROTTLEDOP instead of executing it, as a server
	// does where requests have waited for too long.
	Throttle bool
	// DropReply executes and commits the request and then closes the
	// connection. Neither the reply nor any watch event that the request
	// caused on its own connection is sent.
	DropReply bool
	// HoldReply commits at once, but the reply and everything that follows on
	// the connection waits until the channel is closed.
	HoldReply <-chan struct{}
	// ExpireAfter expires the session after the reply was sent.
	ExpireAfter bool
	// CloseAfter closes the connection after the reply was sent.
	CloseAfter bool
}

type faultHook struct {
	decide func(Request) Fault
	n      atomic.Int64
}

// SetFault has the server call f for every request, except pings and session
// handshakes, before it executes the request. A nil f removes the function. Several
// goroutines call f at the same time. f may call methods of the server.
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
	r := Request{N: hook.n.Add(1), SessionID: t.c.sess.id, Op: t.call.op, Path: t.call.path, Xid: t.xid}
	if len(t.call.parts) > 0 {
		r.Path = t.call.parts[0].path
	}
	return hook.decide(r)
}

// ExpireSession ends a session as if its client had been silent for too long.
// It reports false for an unknown session.
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

// CloseConnection drops the connection of a session, which lives on. It
// reports false when the session is unknown or has no connection.
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

// CloseAllConnections drops every connection; the sessions live on.
func (s *Server) CloseAllConnections() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.connections() {
		s.detach(c).abort()
	}
}

// RefuseConnections makes the server close new connections at once, as if it
// could not be reached. Existing ones are left alone.
func (s *Server) RefuseConnections(refuse bool) { s.refuse.Store(refuse) }

// SetMaxSessionTimeout changes [Config.MaxSessionTimeout], as a rolling restart with
// another maxSessionTimeout does: sessions that are resumed get the new one.
func (s *Server) SetMaxSessionTimeout(limit time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cfg.MaxSessionTimeout = limit
}

// Freeze stops everything, like SIGSTOP, or ends that. While frozen, nothing is executed,
// answered or expired, and pings are not answered. The listener still takes connections.
// After the end, sessions that have been silent for too long by the clock expire first,
// even if their requests wait in a buffer. A real server may do the same.
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

// SetSequence sets the number that the next sequential node under path gets.
// After 2147483647 comes -2147483648, which is printed as Java prints it with
// %010d. This is what ZooKeeper documents. 3.8.0 itself gets stuck instead:
// DataTree.createNode keeps the larger of the old and the new counter, so that
// every further sequential create under that parent meets an existing name.
// TestTheEndOfTheNumbersOnARealServer of package line shows it.
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

// SetVersion sets the version of a node's data, as if there had been so many changes.
// After 2147483647 comes -2147483648.
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
