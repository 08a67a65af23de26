package zkserver

import "time"

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
		t := s.begin()
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
