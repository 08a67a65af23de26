package zkserver

import "time"

// expireLoop expires sessions and reaps containers and TTL nodes, each when it is
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
		for _, due := range []time.Time{s.ask(now), s.expireOverdue(now)} {
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

// wakeExpiry is called when a deadline may be nearer than expireLoop knows.
func (s *Server) wakeExpiry() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// RunContainerCheck deletes containers that had a child and are empty, and childless TTL
// nodes whose data is older than their time to live. The server does so by itself every
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

// A container that never had a child stays: the client that made it may soon use it.
func reapable(n *znode, now int64) bool {
	if n.isContainer() {
		return n.cversion > 0
	}
	return n.ttl() != 0 && now-n.mtime > n.ttl()
}
