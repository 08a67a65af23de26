package zkserver

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"sync"
	"time"
)

// session outlives its connections. All fields but queue are guarded by the
// server's mutex.
type session struct {
	id       int64
	timeout  time.Duration
	deadline time.Time
	conn     *conn     // nil while no connection carries it
	owner    *Follower // the server that it was last opened on, nil for the leader
	ended    bool      // closed or expired

	queue queue
}

// queue keeps the requests of one session in order, across its connections,
// while one of them is held back. See [Fault.Hold].
type queue struct {
	mu      sync.Mutex
	busy    bool
	waiting []task
}

// password proves that a client owns a session. It is derived from the id, and not stored,
// so that the answer to a wrong password is the same as that of a dead session.
func (s *Server) password(id int64) []byte {
	mac := hmac.New(sha256.New, s.secret)
	_ = binary.Write(mac, binary.BigEndian, id)
	return mac.Sum(nil)[:16]
}

// open makes a session or resumes one, for a connection. It returns nil if the session to
// resume is gone, or the password is wrong.
func (s *Server) open(c *conn, r connectRequest) *session {
	timeout := min(max(time.Duration(r.timeout)*time.Millisecond, s.cfg.MinSessionTimeout), s.cfg.MaxSessionTimeout)
	var sess *session
	if r.sessionID == 0 {
		s.nextSession++
		s.tree.zxid++
		sess = &session{id: s.nextSession}
		s.sessions[sess.id] = sess
	} else {
		sess = s.sessions[r.sessionID]
		if sess != nil && sess.conn != nil {
			// ZooKeeper drops the old connection before it looks at the password.
			s.detach(sess.conn).abort()
		}
		if sess == nil || !hmac.Equal(r.password, s.password(sess.id)) {
			return nil
		}
	}
	sess.timeout, sess.conn, sess.owner = timeout, c, c.follower
	sess.touch()
	s.wakeExpiry()
	return sess
}

func (x *session) touch() { x.deadline = time.Now().Add(x.timeout) }

// detach takes a connection's session and watches away; the session lives on.
func (s *Server) detach(c *conn) *conn {
	s.dataWatches.drop(c)
	s.childWatches.drop(c)
	if c.sess != nil && c.sess.conn == c {
		c.sess.conn = nil
	}
	return c
}

// end closes a session in one transaction, with all its ephemeral nodes.
func (s *Server) end(sess *session) {
	sess.ended = true
	delete(s.sessions, sess.id)
	t := s.begin()
	for _, path := range s.tree.owned(sess.id) {
		t.remove(path)
	}
	t.commit()
}

// expire ends a session and its connection.
func (s *Server) expire(sess *session) {
	s.end(sess)
	if c := sess.conn; c != nil {
		c.later(func() { s.detach(c).hangUp() })
	}
}

// expireOverdue returns when the next session could expire, or the zero time without
// sessions.
func (s *Server) expireOverdue(now time.Time) (next time.Time) {
	var overdue []*session
	for _, sess := range s.sessions {
		if !sess.deadline.After(now) {
			overdue = append(overdue, sess)
		} else if next.IsZero() || sess.deadline.Before(next) {
			next = sess.deadline
		}
	}
	slices.SortFunc(overdue, func(a, b *session) int {
		return cmp.Or(a.deadline.Compare(b.deadline), cmp.Compare(a.id, b.id))
	})
	for _, sess := range overdue {
		s.expire(sess)
	}
	return next
}
