package zkserver

import (
	"maps"
	"net"
	"slices"
	"time"
)

// Follower is a second server of the same ensemble, whose leader the [Server] is. It
// differs in what a client can tell:
//
//   - It answers pings and reads by itself. The leader hears that a session is
//     alive when it asks for that, every half tick, and when the session is resumed.
//   - It can be cut off from the leader. Then it goes on answering pings and reads,
//     and passes on neither writes and syncs nor what has happened at the leader.
//     (Reads show the leader's present state all the same, until [Follower.Lag] is
//     called.) It takes no new connection.
//   - It can die with what it has not told the leader.
type Follower struct {
	srv *Server

	// Guarded by the server's mutex.
	heard   map[*session]struct{} // since the leader asked
	queues  map[*session]*queue
	askAt   time.Time     // when the leader asks next
	asked   bool          // the leader has asked while it was cut off
	cut     chan struct{} // non-nil while cut off, closed when that ends
	backlog []func()      // what happened at the leader since, in order
	behind  *tree         // non-nil while it lags: what it knows
}

// Follower returns a new follower of the server.
func (s *Server) Follower() *Follower {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := &Follower{srv: s, heard: make(map[*session]struct{}), queues: make(map[*session]*queue), askAt: time.Now().Add(s.cfg.TickTime / 2)}
	s.followers = append(s.followers, f)
	s.wakeExpiry()
	return f
}

// ServeConn is [Server.ServeConn] for a client that has connected to the follower.
func (f *Follower) ServeConn(nc net.Conn) { f.srv.serve(nc, f) }

// Crash drops the follower's connections, and what it has not told the leader.
func (f *Follower) Crash() {
	f.srv.mu.Lock()
	defer f.srv.mu.Unlock()
	clear(f.heard)
	for _, c := range f.srv.connections() {
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

// Lag has reads of the follower, which is cut off, show the leader's present state and
// nothing later, until it is healed.
func (f *Follower) Lag() {
	f.srv.mu.Lock()
	defer f.srv.mu.Unlock()
	f.behind = f.srv.tree.clone()
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
	f.srv.mu.Lock()
	defer f.srv.mu.Unlock()
	known, cut := f.behind, f.cut
	f.behind, f.cut = nil, nil
	for _, happened := range f.backlog {
		happened()
	}
	f.backlog = nil
	if known != nil {
		f.catchUp(known)
	}
	if f.asked { // before anything that was held back
		f.asked = false
		f.answer()
	}
	if cut != nil {
		close(cut)
	}
}

// answer tells the leader which clients were heard.
func (f *Follower) answer() {
	for sess := range f.heard {
		sess.touch()
	}
	clear(f.heard)
}

// catchUp fires the watches that were armed while the follower lagged, on what had
// already changed at the leader.
func (f *Follower) catchUp(known *tree) {
	for _, c := range f.srv.connections() {
		if c.follower != f {
			continue
		}
		missed := watchList{relativeZxid: known.zxid}
		for _, path := range slices.Sorted(maps.Keys(f.srv.dataWatches.byConn[c])) {
			if f.srv.dataWatches.byPath[path][c] != watchStandard {
				continue
			}
			f.srv.dataWatches.remove(path, c)
			if known.get(path) != nil {
				missed.data = append(missed.data, path)
			} else {
				missed.exist = append(missed.exist, path)
			}
		}
		for _, path := range slices.Sorted(maps.Keys(f.srv.childWatches.byConn[c])) {
			if f.srv.childWatches.byPath[path][c] == watchStandard {
				f.srv.childWatches.remove(path, c)
				missed.child = append(missed.child, path)
			}
		}
		f.srv.rearm(c, missed)
	}
}

// known is the state that reads of the connection show.
func (c *conn) known() *tree {
	if c.follower != nil && c.follower.behind != nil {
		return c.follower.behind
	}
	return c.srv.tree
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
	if !op.forLeader() {
		return nil
	}
	c.srv.mu.Lock()
	defer c.srv.mu.Unlock()
	if !c.behind() {
		return nil
	}
	return c.follower.cut
}

// forLeader reports whether a follower passes requests of that kind on to the leader.
func (op Op) forLeader() bool { return op.writes() || op == OpSync || op == OpCloseSession }

// ask has the leader hear from the followers, where that is due, and returns when
// it asks next, or the zero time when there is no follower.
func (s *Server) ask(now time.Time) (next time.Time) {
	for _, f := range s.followers {
		for !now.Before(f.askAt) {
			f.askAt = f.askAt.Add(s.cfg.TickTime / 2)
			if f.cut != nil {
				f.asked = true
				continue
			}
			f.answer()
		}
		if next.IsZero() || f.askAt.Before(next) {
			next = f.askAt
		}
	}
	return next
}
