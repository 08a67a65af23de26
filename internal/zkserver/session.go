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
	owner    *Follower // the server on which it was last opened, nil for the leader
	moves    int       // how often it was opened on another server than before
	ended    bool      // closed or expired

	queue queue
}

// queue keeps the requests of one session in order, across its connections,
// while a request is held back. See [Fault.Hold].
type queue struct {
	mu      sync.Mutex
	busy    bool
	waiting []task
}

// password returns the password of a session. It is derived from the id and not stored, so
// that a wrong password and a dead session get the same answer.
func (s *Server) password(id int64) []byte {
	mac := hmac.New(sha256.New, s.secret)
	_ = binary.Write(mac, binary.BigEndian, id)
	return mac.Sum(nil)[:16]
}

// open creates or resumes the session of a connection. It returns nil if the session to
// resume has ended or the password is wrong.
func (s *Server) open(c *conn, r connectRequest) *session {
	timeout := s.bound(r.timeout)
	var sess *session
	if r.sessionID == 0 || s.profile.forgets {
		s.nextSession++
		s.tree.zxid++
		sess = &session{id: s.nextSession}
		s.sessions[sess.id] = sess
	} else {
		sess = s.sessions[r.sessionID]
		if sess != nil && sess.conn != nil {
			// ZooKeeper drops the old connection before it checks the password.
			s.detach(sess.conn).abort()
		}
		if sess == nil || !hmac.Equal(r.password, s.password(sess.id)) {
			return nil
		}
	}
	if sess.owner != c.follower {
		sess.moves++
	}
	sess.timeout, sess.conn, sess.owner, c.moves = timeout, c, c.follower, sess.moves
	sess.touch()
	s.wakeExpiry()
	return sess
}

// bound returns the timeout of a session for which a client requests some milliseconds.
func (s *Server) bound(requested int32) time.Duration {
	return min(max(time.Duration(requested)*time.Millisecond, s.cfg.MinSessionTimeout), s.cfg.MaxSessionTimeout)
}

func (x *session) touch() { x.deadline = time.Now().Add(x.timeout) }

// detach removes the watches of a connection and separates it from its session, which
// stays open.
func (s *Server) detach(c *conn) *conn {
	s.dataWatches.drop(c)
	s.childWatches.drop(c)
	if c.sess != nil && c.sess.conn == c {
		c.sess.conn = nil
	}
	return c
}

// end ends a session and deletes its ephemeral znodes, in one transaction.
func (s *Server) end(sess *session) {
	sess.ended = true
	delete(s.sessions, sess.id)
	t := s.newTxn()
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

// expireOverdue expires the sessions whose deadline has passed. It returns the next
// deadline, or the zero time if no session is left.
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

// expireLoop expires sessions and reaps containers and TTL znodes, each when it is
// due, until the server closes.
func (s *Server) expireLoop() {
	timer := time.NewTimer(s.cfg.ReapInterval)
	defer timer.Stop()
	reapAt := time.Now().Add(s.cfg.ReapInterval)
	for {
		next := reapAt
		if !s.lockThawed() {
			return
		}
		now := time.Now()
		if !now.Before(reapAt) {
			s.reap(now)
			reapAt = now.Add(s.cfg.ReapInterval)
			next = reapAt
		}
		for _, due := range []time.Time{s.pollFollowers(now), s.expireOverdue(now)} {
			if !due.IsZero() && due.Before(next) {
				next = due
			}
		}
		s.mu.Unlock()

		timer.Reset(time.Until(next))
		select {
		case <-timer.C:
		case <-s.wake:
		case <-s.done:
			return
		}
	}
}

// wakeExpiry makes expireLoop read the deadlines again. A caller that may have set an
// earlier one calls it.
func (s *Server) wakeExpiry() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// RunContainerCheck deletes empty containers that once had a child, and childless TTL
// znodes whose data is older than their time to live. The server also does so every
// [Config.ReapInterval].
func (s *Server) RunContainerCheck() {
	if s.lockThawed() {
		s.reap(time.Now())
		s.mu.Unlock()
	}
}

func (s *Server) reap(now time.Time) {
	var due []string
	for _, path := range s.tree.reapable.list {
		if n := s.tree.get(path); n.children.len() == 0 && reapable(n, now.UnixMilli()) {
			due = append(due, path)
		}
	}
	for _, path := range due {
		t := s.newTxn()
		t.remove(path)
		t.commit()
	}
}

// reapable reports whether a childless container or TTL znode is due. A container that
// never had a child is not: the client that created it may be about to use it.
func reapable(n *znode, now int64) bool {
	if n.isContainer() {
		return n.cversion > 0
	}
	return n.ttl() != 0 && now-n.mtime > n.ttl()
}
